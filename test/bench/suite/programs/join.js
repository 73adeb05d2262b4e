// want: 2077690
function main(input) {
  let total = 0;
  for (let k = 0; k < 10; k++) {
    const parts = [];
    for (let i = 0; i < 10000; i++) parts.push("line " + i);
    const text = parts.join("\n");
    total += text.length + text.split("\n").length + text.indexOf("line 9999");
  }
  return total;
}
