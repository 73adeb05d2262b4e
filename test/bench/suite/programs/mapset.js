// want: [148340,0,5000]
function main(input) {
  const counts = new Map(), seen = new Set();
  for (let i = 0; i < 30000; i++) {
    const key = "k" + (i * 7919) % 5000;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (!seen.has(key)) seen.add(key);
  }
  let total = 0;
  for (const [key, n] of counts) total += n * key.length;
  for (const key of seen) if (counts.delete(key)) total++;
  return [total, counts.size, seen.size];
}
