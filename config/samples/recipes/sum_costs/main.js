// Sums in cents, which are whole numbers, and sorts by sum and then by name, so that
// the order is always the same.
function main(input) {
  const costs = tools.call("list_costs", { month: input.month }).costs;
  const sums = new Map();
  for (const c of costs) sums.set(c.team, (sums.get(c.team) ?? 0) + c.cents);
  const teams = [...sums].map(([team, cents]) => ({ team, cents }));
  teams.sort((a, b) => b.cents - a.cents || (a.team < b.team ? -1 : 1));
  return { total: teams.reduce((n, t) => n + t.cents, 0), teams: teams.slice(0, input.top) };
}
