// want: [400,73963000,104586,true]
function main(input) {
  const lines = [];
  for (let i = 0; i < 2000; i++) {
    lines.push(`2026-${String(i % 12 + 1).padStart(2, "0")}-17 GET /parts/${i}?q=bolt${i % 9} ${i % 5 === 0 ? 404 : 200} ${i * 37}ms user${i}@example.com`);
  }
  const text = lines.join("\n");
  let errors = 0, time = 0;
  for (const m of text.matchAll(/^(\d{4})-(\d\d)-\d\d (GET|POST) (\/[^ ?]+)\?q=(\w+) (\d{3}) (\d+)ms/gm)) {
    if (m[6] === "404") errors++;
    time += Number(m[7]);
  }
  const hidden = text.replace(/[\w.]+@[\w.]+/g, "<mail>").replace(/bolt(\d)/g, (_, d) => "nut" + d);
  return [errors, time, hidden.length, /(?<=nut)8/.test(hidden)];
}
