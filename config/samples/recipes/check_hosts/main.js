// Asks for each host of a list. Calls come one after another, in the list's order.
function main(input) {
  const seen = new Set();
  const down = [];
  for (const host of input.hosts) {
    if (seen.has(host)) continue;
    seen.add(host);
    const state = tools.call("get_host_state", { host });
    if (!state.up) down.push(host);
  }
  return { asked: seen.size, down };
}
