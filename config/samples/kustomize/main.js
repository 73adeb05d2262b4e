function main(input) {
  return { total: input.amounts.reduce((sum, n) => sum + n, 0) };
}
