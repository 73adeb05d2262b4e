// bench.mjs [--check] [--benchtime 200ms] [--only RE]: the measures of
// ../suite for quickjs-emscripten, QuickJS in node's WebAssembly, printed in
// Go's benchmark format. --check compares the programs' values instead.
// It has no bound on its own: limits are off, as they are by default.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { fileURLToPath, pathToFileURL } from "node:url";

// The package lies in a cache outside of the checkout; see hack/bench.sh.
const modules = process.env.CODEACT_BENCH_NODE ?? fileURLToPath(new URL(".", import.meta.url));
const { getQuickJS } = createRequire(pathToFileURL(modules + "/"))("quickjs-emscripten");
const quickjs = await getQuickJS();

const compute = ["fib", "sieve", "json", "join", "sort", "regex", "mapset", "mapint", "classes"];
const source = Object.fromEntries(["trivial", "call", ...compute].map((name) =>
  [name, readFileSync(new URL(`../suite/programs/${name}.js`, import.meta.url), "utf8")]));
const want = (name) => /^\/\/ want: (.*)\n/.exec(source[name])[1];

// The same glue as suite.Wrap.
const glue = `
const tools = { call: (name, args) => JSON.parse(hostCall(name, JSON.stringify(args))) };
function run(input) { return JSON.stringify(main(JSON.parse(input))); }
`;

function fresh() {
  const vm = quickjs.newContext();
  vm.newFunction("hostCall", (name, args) => {
    vm.getString(name);
    return vm.newString(vm.getString(args));
  }).consume((f) => vm.setProp(vm.global, "hostCall", f));
  return vm;
}

function run(name, input) {
  const vm = fresh();
  try {
    vm.unwrapResult(vm.evalCode(source[name] + glue, "main.js")).dispose();
    const f = vm.getProp(vm.global, "run"), arg = vm.newString(input);
    const out = vm.unwrapResult(vm.callFunction(f, vm.undefined, arg));
    const text = vm.getString(out);
    for (const h of [f, arg, out]) h.dispose();
    return text;
  } finally {
    vm.dispose();
  }
}

function check(name) {
  const got = run(name, "null");
  if (got !== want(name)) throw new Error(`${name} returned ${got}, want ${want(name)}`);
}
function call(calls, bytes, rows) {
  const got = run("call", JSON.stringify({ calls, bytes, rows }));
  if (got !== String(calls)) throw new Error(`${calls} calls of ${bytes} bytes returned ${got}`);
}
const times = (f) => (n) => { for (let i = 0; i < n; i++) f(); };

const measures = {
  fresh: times(() => fresh().dispose()),
  trivial: times(() => check("trivial")),
  "call/100B": (n) => call(n, 100, false),
  "call/100KB": (n) => call(n, 100_000, false),
  "call/100KB-rows": (n) => call(n, 100_000, true),
  ...Object.fromEntries(compute.map((name) => [`compute/${name}`, times(() => check(name))])),
  "goroutines/1": times(() => check("trivial")),
  cold: times(() => execFileSync(process.execPath, [fileURLToPath(import.meta.url), "--cold"])),
};

const args = process.argv.slice(2);
const option = (name, otherwise) => args.includes(name) ? args[args.indexOf(name) + 1] : otherwise;
const line = (name, n, values) => console.log(`BenchmarkExecution/${name}-${availableParallelism()}\t${n}\t${values}`);

// As testing.B does it: more rounds until they take long enough.
function measure(name, f, enough) {
  for (let n = 1; ;) {
    const cpu0 = process.cpuUsage(), t0 = process.hrtime.bigint();
    f(n);
    const ns = Number(process.hrtime.bigint() - t0), cpu = process.cpuUsage(cpu0);
    if (ns >= enough) {
      const own = name === "cold" || name.startsWith("goroutines/") ? "" : `\t${(cpu.user + cpu.system) * 1000 / n} cpu-ns/op`;
      return line(name, n, `${ns / n} ns/op${own}`);
    }
    n = Math.max(n + 1, Math.min(100 * n, Math.ceil((1.2 * n * enough) / Math.max(ns, 1))));
  }
}

function growth() {
  const some = times(() => check("trivial")), rss = () => process.memoryUsage.rss();
  some(200);
  const before = rss(), t0 = process.hrtime.bigint();
  some(10_000);
  const ns = Number(process.hrtime.bigint() - t0), after = rss();
  line("growth", 1, `${ns} ns/op\t${after} B-after\t${before} B-before\t${(after - before) / 10_000} B/execution`);
}

if (args.includes("--cold")) {
  check("trivial");
} else if (args.includes("--check")) {
  for (const name of ["trivial", ...compute]) check(name);
  for (const rows of [false, true]) call(3, 1000, rows);
  console.log(`ok\t${compute.length + 3} programs`);
} else {
  const only = new RegExp(option("--only", "."));
  const enough = parseFloat(option("--benchtime", "200ms")) * (/[^m]s$/.test(option("--benchtime", "200ms")) ? 1e9 : 1e6);
  times(() => check("trivial"))(100); // what a process does once has happened before
  for (const [name, f] of Object.entries(measures)) if (only.test(name)) measure(name, f, enough);
  if (only.test("growth")) growth();
}
