// want: [1746500,500,500]
function main(input) {
  const counts = new Map(), seen = new Set();
  for (let i = 0; i < 6000; i++) {
    const key = (i * 7919) % 500;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (!seen.has(key * 2)) seen.add(key * 2);
  }
  let total = 0;
  for (const [key, n] of counts) total += n * key;
  for (const key of seen) total += key;
  return [total, counts.size, seen.size];
}
