// want: 196418
function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
function main(input) {
  return fib(27);
}
