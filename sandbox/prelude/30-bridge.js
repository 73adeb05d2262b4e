// --- The global object holds this list, and tools. ---
const keep = { __proto__: null };
for (const k of [
  "Object", "Function", "Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError",
  "InternalError", "AggregateError", "Iterator", "Array", "parseInt", "parseFloat", "isNaN", "isFinite", "decodeURI",
  "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape", "Infinity", "NaN", "undefined",
  "Number", "Boolean", "String", "Math", "Reflect", "Symbol", "Date", "RegExp", "JSON", "Proxy", "Map", "Set",
  "WeakMap", "WeakSet", "ArrayBuffer", "DataView", "Uint8ClampedArray", "Int8Array", "Uint8Array", "Int16Array",
  "Uint16Array", "Int32Array", "Uint32Array", "BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array",
  "Float64Array", "BigInt",
]) keep[k] = true;
for (const k of ownKeys(G)) {
  if (keep[k]) continue;
  if (!Reflect.deleteProperty(G, k)) throw new Err("cannot remove " + String(k));
}

// --- tools: inert unless main runs; the host knows the phase and ends the
// execution by itself, so that nothing here has to be believed. ---
const tools = { __proto__: null };
const call = (name, args) => {
  if (!live) host(0, 0, 0, 0);
  if (typeof name !== "string" || name === "") throw new TE("tools.call: the name must be a non-empty string");
  let text;
  try { text = stringify(args); } catch (e) {
    throw new TE("tools.call: the arguments cannot be written as JSON: " + property(e, "message", 500), { __proto__: null, cause: e });
  }
  if (typeof text !== "string") throw new TE("tools.call: the arguments must be JSON");
  const answer = parse(host(0, 0, 0, 0, name, text));
  if (answer[0] === true) return answer[1];
  const e = new Err(answer[2]);
  defineProperty(e, "code", { __proto__: null, value: answer[1], writable: true, enumerable: true, configurable: true });
  throw e;
};
const bound = bind(call, undefined); // its source text is not shown
define(bound, "name", "call", false);
freeze(bound);
defineProperty(tools, "call", { __proto__: null, value: bound, enumerable: true });
freeze(tools);
defineProperty(G, "tools", { __proto__: null, value: tools, enumerable: true });

// --- The runner. An answer is a string: its first character says what follows. ---
const property = (o, k, n) => {
  try { const v = o[k]; return typeof v === "string" ? slice(v, 0, n) : ""; } catch { return ""; }
};
// Strings only: for an object the engine's stringify calls setters of Array.prototype.
const fail = (name, message, stack) =>
  `!{"name":${stringify(name)},"message":${stringify(message)},"stack":${stringify(stack)}}`;
const describe = (e) => {
  if (e === null || (typeof e !== "object" && typeof e !== "function")) {
    return fail("", typeof e === "symbol" ? "a symbol was thrown" : slice(`${e}`, 0, 2000), "");
  }
  const name = property(e, "name", 100), message = property(e, "message", 2000);
  if (name !== "" || message !== "") return fail(name, message, property(e, "stack", 4000));
  let text;
  try { text = stringify(e); } catch {}
  return fail("", typeof text === "string" ? "thrown: " + slice(text, 0, 500) : "an object was thrown that cannot be shown", "");
};
const refuse = (what) => fail("TypeError", "main must return JSON, not " + what, "");
const refused = (r) => {
  switch (typeof r) {
  case "undefined": return "undefined; return null for no value";
  case "function": return "a function";
  case "symbol": return "a symbol";
  case "bigint": return "a BigInt; use a Number or a string";
  case "object":
    if (r === null) return "";
    if (typeof r.then === "function") return "a thenable";
    if (typeof r.next === "function") return "an iterator; spread it into an array";
  }
  return "";
};
let live = false, main;
return function (op, a, b) {
  try {
    if (op === 0) { // define: a is the compiled script
      evalScript(a, { __proto__: null, eval_function: true });
      const d = getOwnPropertyDescriptor(G, "main");
      main = d && d.value;
      return "=";
    }
    if (op === 1) { // call main: a is the input, b the most characters of the result
      live = true;
      const f = main;
      if (typeof f !== "function") return fail("TypeError", "main is no longer a function", "");
      const r = f(parse(a)), what = refused(r);
      if (what !== "") return refuse(what);
      const s = stringify(r);
      if (typeof s !== "string") return refuse("an object whose toJSON gives no JSON");
      return s.length > b ? "#" : "=" + s;
    }
  } catch (e) { return describe(e); }
  return describe(a); // an exception that the host holds
};
})
