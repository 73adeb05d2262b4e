// want: 17984
function main(input) {
  const n = 200000, composite = new Uint8Array(n + 1);
  let primes = 0;
  for (let i = 2; i <= n; i++) {
    if (composite[i]) continue;
    primes++;
    for (let k = i * 2; k <= n; k += i) composite[k] = 1;
  }
  return primes;
}
