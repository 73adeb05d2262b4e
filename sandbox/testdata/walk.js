// Lists everything that a program can reach: own properties, accessors and
// prototypes, from the global object and from what every form of syntax makes.
const top = this;
const walk = (roots) => {
  const seen = new Map(), queue = [], out = [];
  const add = (path, v) => {
    if (v === null || (typeof v !== "object" && typeof v !== "function") || seen.has(v)) return;
    seen.set(v, path);
    queue.push(v);
  };
  for (const [path, v] of roots) add(path, v);
  for (let i = 0; i < queue.length; i++) {
    const o = queue[i], path = seen.get(o);
    const proto = Object.getPrototypeOf(o);
    if (proto !== null && !seen.has(proto)) out.push(path + ".__proto__");
    add(path + ".__proto__", proto);
    for (const k of Reflect.ownKeys(o)) {
      if (typeof o === "function" && (k === "length" || k === "name")) continue;
      const at = path + (path === "" ? "" : ".") + (typeof k === "symbol" ? "@@" + String(k.description) : k);
      const d = Object.getOwnPropertyDescriptor(o, k);
      out.push(at + ("value" in d ? "" : " (accessor)"));
      add(at, d.value);
      add(at + ".get", d.get);
      add(at + ".set", d.set);
    }
  }
  return out.sort();
};
function main() {
  const engineError = (() => { try { null.x; } catch (e) { return e; } })();
  const syntaxError = (() => { try { JSON.parse("{"); } catch (e) { return e; } })();
  class Base { #p = 1; static s = 1; get g() { return this.#p; } m() {} }
  class Derived extends Base {}
  const generator = function* () { yield 1; };
  const tag = (parts) => parts;
  const roots = [
    ["", top],
    ["{arrow}", () => 1], ["{function}", function () {}], ["{method}", { m() {} }.m], ["{generator function}", generator],
    ["{generator}", generator()], ["{class}", Base], ["{derived class}", Derived], ["{instance}", new Derived()],
    ["{arguments}", (function () { return arguments; })(1)], ["{template}", tag`a${1}b`], ["{regexp}", /a/dg],
    ["{match}", /(?<n>a)/d.exec("a")], ["{engine error}", engineError], ["{parse error}", syntaxError],
    ["{array iterator}", [][Symbol.iterator]()], ["{string iterator}", ""[Symbol.iterator]()],
    ["{map iterator}", new Map().entries()], ["{set iterator}", new Set().values()], ["{regexp iterator}", "".matchAll(/a/g)],
    ["{iterator helper}", [].values().map((x) => x)], ["{wrapped iterator}", Iterator.from({ next() {} })],
    ["{bound}", function () {}.bind(null)], ["{proxy}", new Proxy({}, {})], ["{revocable}", Proxy.revocable({}, {})],
    ["{boxed string}", Object("")], ["{boxed symbol}", Object(Symbol.iterator)], ["{boxed bigint}", Object(1n)],
    ["{date}", new Date(0)], ["{buffer}", new ArrayBuffer(8)], ["{parsed}", JSON.parse('{"a":[1]}')],
    ["{group}", Object.groupBy([1], () => "a")], ["{resizable}", new ArrayBuffer(8, { maxByteLength: 16 })],
    ["{tool error}", (() => { try { tools.call("fail", {}); } catch (e) { return e; } })()],
    ["{tool misuse}", (() => { try { tools.call(); } catch (e) { return e; } })()],
    ["{tool result}", tools.call("echo", { a: [1] })],
  ];
  return walk(roots);
}
