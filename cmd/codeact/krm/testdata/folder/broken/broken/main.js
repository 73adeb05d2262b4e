function main(input) {
  return tools.call("get_item" { id: 1 });
}
