// want: 4785180
function main(input) {
  const counts = new Map(), seen = new Set();
  for (let i = 0; i < 60000; i++) {
    const key = "k" + (i * 7919) % 5000;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (!seen.has(i % 3000)) seen.add(i % 3000);
  }
  let total = 0;
  for (const [key, n] of counts) total += n * key.length;
  for (const n of seen) total += n;
  return total;
}
