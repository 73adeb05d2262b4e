// Reports as a table in Markdown. A cell is one line, whatever the source holds.
function cell(value) {
  return String(value).replace(/\s+/g, " ").replace(/\|/g, "\\|").trim();
}

function table(head, rows) {
  const line = (cells) => "| " + cells.map(cell).join(" | ") + " |";
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function main(input) {
  const items = tools.call("list_stock", { warehouse: input.warehouse }).items;
  const low = items.filter((x) => x.stock < x.least).sort((a, b) => (a.sku < b.sku ? -1 : 1));
  if (low.length === 0) return { low: 0, table: "Nothing is low." };
  return { low: low.length, table: table(["Article", "Stock", "Least"], low.map((x) => [x.name, x.stock, x.least])) };
}
