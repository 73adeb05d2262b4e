// want: [8250,44693]
function main(input) {
  const rows = [];
  for (let i = 0; i < 400; i++) {
    rows.push({ id: i, name: "part " + i, price: i * 1.25, tags: ["a", "b\n", "ü"], stock: { here: i % 7, there: null }, active: i % 2 === 0 });
  }
  let sum = 0, text = JSON.stringify(rows);
  for (let k = 0; k < 20; k++) {
    const back = JSON.parse(text);
    sum += back[k].id + back.length + back[399].tags.length;
    text = JSON.stringify(back);
  }
  return [sum, text.length];
}
