  // Begins with a blank.
function main(input) {
  return tools.call("get_item", { id: input.id });
}
