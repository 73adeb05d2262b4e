// want: [236800,1049990656,2147470080,1334,3793]
function main(input) {
  let seed = 42;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
  const numbers = [], rows = [];
  for (let i = 0; i < 10000; i++) numbers.push(next());
  for (let i = 0; i < 4000; i++) rows.push({ key: "k" + next(), n: i });
  numbers.sort((a, b) => a - b);
  rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return [numbers[0], numbers[5000], numbers[9999], rows[0].n, rows[3999].n];
}
