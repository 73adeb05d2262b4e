// The prelude runs once, before the snapshot, and is the only code of ours that
// touches guest values. It takes what it needs of the language before any guest
// code exists, removes what the execution contract does not offer, and returns
// the one function that the host calls. Nothing in it may look anything up on a
// global or a prototype after it has returned.
(function (wrapper) {
"use strict";
const G = globalThis, FP = Function.prototype, realCall = FP.call;

// qjs wraps its host function in JavaScript; the wrapper gives it away once.
let host;
FP.call = function () { host = this; };
wrapper();
FP.call = realCall;
if (typeof host !== "function") throw new Error("no host function");

const uncurry = FP.bind.bind(realCall), bind = uncurry(FP.bind);
const parse = JSON.parse, stringify = JSON.stringify, evalScript = std.evalScript;
const { getPrototypeOf, getOwnPropertyDescriptor, defineProperty, freeze } = Object;
const { construct, ownKeys } = Reflect;
const { TypeError: TE, Error: Err } = G;
const slice = uncurry(String.prototype.slice);

// A descriptor without a prototype: Object.prototype.get must not join in.
const define = (o, k, value, open) =>
  defineProperty(o, k, { __proto__: null, value, writable: open, enumerable: false, configurable: open });

// --- No code from strings: every constructor that compiles becomes a stub. ---
const stub = (name, proto) => {
  const f = { [name]: function () { throw new TE(name + ": code from strings is not available"); } }[name];
  define(f, "prototype", proto, false);
  define(proto, "constructor", f, false);
  return f;
};
const GFP = getPrototypeOf(function* () {});
const AFP = getPrototypeOf(async function () {}), AGFP = getPrototypeOf(async function* () {});
define(G, "Function", stub("Function", FP), true);
stub("GeneratorFunction", GFP);
stub("AsyncFunction", AFP);
stub("AsyncGeneratorFunction", AGFP);

// --- No promises: what syntax could still reach does nothing. ---
const strip = (o, but) => { for (const k of ownKeys(o)) if (k !== but) delete o[k]; };
strip(Promise.prototype);
define(Promise.prototype, "constructor", undefined, false);
define(Promise.prototype, "then", undefined, false);
freeze(Promise.prototype);
strip(getPrototypeOf(AGFP.prototype));
strip(AGFP.prototype, "constructor");
freeze(AGFP.prototype);
delete Array.fromAsync;

// --- No clock, no randomness. ---
const D = Date;
const NewDate = { Date: function Date(...a) {
  if (new.target === undefined || a.length === 0) throw new TE("Date: the host's clock is not available; pass a time");
  if (a.length === 1) a[0] = timeOf(a[0]);
  return construct(D, a, new.target);
} }.Date;
const dateValue = uncurry(D.prototype.getTime), { toPrimitive } = Symbol, { apply } = Reflect;
const isObject = (v) => v !== null && (typeof v === "object" || typeof v === "function");
// What new Date makes of one value: a time, through our own Date.parse.
const timeOf = (v) => {
  if (isObject(v)) {
    try { return dateValue(v); } catch {}
    v = primitive(v);
  }
  return typeof v === "string" ? parseTime(v) : v;
};
const primitive = (v) => {
  const f = v[toPrimitive];
  let p = v;
  if (f !== undefined && f !== null) {
    p = apply(f, v, ["default"]);
  } else {
    if (typeof v.valueOf === "function") p = v.valueOf();
    if (isObject(p) && typeof v.toString === "function") p = v.toString();
  }
  if (isObject(p)) throw new TE("cannot convert to a primitive value");
  return p;
};
define(NewDate, "prototype", D.prototype, false);
defineProperty(NewDate, "length", { value: 7 });
define(NewDate, "UTC", D.UTC, true);
define(NewDate, "parse", D.parse, true);
define(D.prototype, "constructor", NewDate, true);
define(G, "Date", NewDate, true);
delete Math.random;

// --- No hooks that hand out functions of the stack. ---
delete Error.prepareStackTrace;
delete Error.captureStackTrace;
delete Error.stackTraceLimit;
for (const k of ["fileName", "lineNumber", "columnNumber"]) delete FP[k];

