// Reads page after page until there is no next one. A loop over pages has a bound of
// its own, so that the run says what it left out instead of ending at its limit.
const MOST_PAGES = 10;

function main(input) {
  const issues = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const args = { project: input.project };
    if (cursor !== null) args.cursor = cursor;
    const answer = tools.call("list_issues", args);
    issues.push(...answer.issues.map((x) => x.id));
    cursor = answer.next ?? null;
    if (cursor === null) break;
  }
  return { issues, complete: cursor === null };
}
