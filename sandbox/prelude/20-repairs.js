// --- Faults of the pinned engine. Each of these built-ins was wrong or unsafe;
// RATIONALE.md says how. A replacement uses nothing that a program can change. ---
const { setPrototypeOf, create, getOwnPropertyNames: namesOf } = Object;
const { max, min, trunc } = Math;
const { RangeError: RE, SyntaxError: SE, Object: Obj, Symbol: Sym, BigInt: Big, Array: Arr } = G;
const hasWeak = uncurry(WeakMap.prototype.has), getWeak = uncurry(WeakMap.prototype.get), setWeak = uncurry(WeakMap.prototype.set);
const { asIntN } = Big, LENGTH = Number.MAX_SAFE_INTEGER;

// A replacement shows the text that a built-in function shows.
const disguised = new WeakMap(), textOf = uncurry(FP.toString);
const disguise = (f) => { setWeak(disguised, f, "function " + f.name + "() {\n    [native code]\n}"); return f; };
const replace = (o, methods) => { for (const k of ownKeys(methods)) define(o, k, disguise(methods[k]), true); };
replace(FP, { toString() { return hasWeak(disguised, this) ? getWeak(disguised, this) : textOf(this); } });
for (const f of [NewDate, FP.constructor, GFP.constructor, AFP.constructor, AGFP.constructor]) disguise(f);

// A constructor that takes the place of old, on the same prototype.
const succeed = (old, name, length, f) => {
  define(f, "prototype", old.prototype, false);
  defineProperty(f, "length", { __proto__: null, value: length });
  for (const k of ownKeys(old)) {
    if (k !== "prototype" && k !== "length" && k !== "name") defineProperty(f, k, getOwnPropertyDescriptor(old, k));
  }
  define(old.prototype, "constructor", f, true);
  define(G, name, disguise(f), true);
  return f;
};

const toObject = (v) => { if (v === undefined || v === null) throw new TE("cannot convert to object"); return Obj(v); };
const integer = (v) => { v = +v; return v !== v ? 0 : trunc(v); };
const lengthOf = (o) => max(0, min(integer(o.length), LENGTH));
const relative = (v, n) => { const i = integer(v); return i < 0 ? max(i + n, 0) : min(i, n); };

// Arrays are filled without a prototype, so that no setter there joins in.
const bare = (n) => { if (n > 0xffffffff) throw new RE("invalid array length"); return setPrototypeOf([], null); };
const AP = Arr.prototype, sort = uncurry(AP.sort);
replace(AP, {
  toReversed() {
    const o = toObject(this), n = lengthOf(o), a = bare(n);
    for (let i = 0; i < n; i++) a[i] = o[n - 1 - i];
    return setPrototypeOf(a, AP);
  },
  toSorted(compare) {
    if (compare !== undefined && typeof compare !== "function") throw new TE("not a function");
    const o = toObject(this), n = lengthOf(o), a = bare(n);
    for (let i = 0; i < n; i++) a[i] = o[i];
    return sort(setPrototypeOf(a, AP), compare);
  },
  toSpliced(start, skip, ...items) {
    const o = toObject(this), n = lengthOf(o), from = relative(start, n), added = items.length;
    const skipped = arguments.length === 0 ? 0 : arguments.length === 1 ? n - from : min(max(integer(skip), 0), n - from);
    const length = n + added - skipped;
    if (length > LENGTH) throw new TE("invalid array length");
    const a = bare(length);
    let i = 0;
    for (; i < from; i++) a[i] = o[i];
    for (let k = 0; k < added; k++) a[i++] = items[k];
    for (let k = from + skipped; k < n; k++) a[i++] = o[k];
    return setPrototypeOf(a, AP);
  },
  with(index, value) {
    const o = toObject(this), n = lengthOf(o), r = integer(index), at = r < 0 ? r + n : r;
    if (at < 0 || at >= n) throw new RE("invalid array index: " + at);
    const a = bare(n);
    for (let i = 0; i < n; i++) a[i] = i === at ? value : o[i];
    return setPrototypeOf(a, AP);
  },
});

// A buffer never moves and gives its memory to nobody: whoever held a view would
// read and write memory that was freed. What may grow has its largest size at once.
const AB = ArrayBuffer, resize = uncurry(AB.prototype.resize);
delete AB.prototype.transfer;
delete AB.prototype.transferToFixedLength;
const index = (v) => {
  const n = integer(v);
  if (n < 0 || n > LENGTH) throw new RE("invalid array buffer length");
  return n;
};
succeed(AB, "ArrayBuffer", 1, { ArrayBuffer: function (length, options) {
  if (new.target === undefined) throw new TE("constructor requires 'new'");
  const n = index(length), most = isObject(options) ? options.maxByteLength : undefined;
  if (most === undefined) return construct(AB, [n], new.target);
  const m = index(most);
  if (n > m) throw new RE("invalid array buffer length");
  const b = construct(AB, [m, { __proto__: null, maxByteLength: m }], new.target);
  resize(b, n);
  return b;
} }.ArrayBuffer);

// What the program does in a comparator or a conversion comes before the memory.
const TP = getPrototypeOf(Uint8Array.prototype), sortTyped = uncurry(TP.sort), atTyped = uncurry(TP.at);
const kindOf = uncurry(getOwnPropertyDescriptor(TP, Sym.toStringTag).get), typedLength = uncurry(getOwnPropertyDescriptor(TP, "length").get);
const typed = { __proto__: null };
for (const k of namesOf(G)) if (typeof G[k] === "function" && getPrototypeOf(G[k]) === getPrototypeOf(Uint8Array)) typed[k] = G[k];
replace(TP, {
  sort(compare) {
    if (typeof compare !== "function") return sortTyped(this, compare);
    atTyped(this, 0); // throws for what is no typed array, or is out of bounds
    const n = typedLength(this), a = bare(n);
    for (let i = 0; i < n; i++) a[i] = { __proto__: null, v: this[i] }; // the engine compares no value with itself
    sort(setPrototypeOf(a, AP), (x, y) => compare(x.v, y.v));
    for (let i = min(n, typedLength(this)) - 1; i >= 0; i--) this[i] = a[i].v;
    return this;
  },
  with(index, value) {
    atTyped(this, 0);
    const kind = kindOf(this), n = typedLength(this), r = integer(index), at = r < 0 ? r + n : r;
    const v = kind === "BigInt64Array" || kind === "BigUint64Array" ? asIntN(64, value) : +value;
    if (!(at >= 0 && at < typedLength(this))) throw new RE("invalid array index: " + at);
    const a = new typed[kind](n);
    for (let i = 0; i < n; i++) a[i] = i === at ? v : this[i];
    return a;
  },
});

delete Iterator.concat;

// asIntN is right; what is negative wraps around.
replace(Big, { asUintN(bits, value) {
  bits = integer(bits);
  const v = asIntN(bits, value);
  return v < 0n ? v + (1n << Big(bits)) : v;
} });

// A date in the ISO form with a month or a day of 00 is none.
const exec = uncurry(RegExp.prototype.exec), zeroDate = /^\s*[+-]?\d{4,6}-(?:00|\d\d-00)(?!\d)/;
const parseDate = D.parse, parseTime = (text) => exec(zeroDate, text) === null ? parseDate(text) : NaN;
replace(NewDate, { parse(text) { return parseTime(`${text}`); } });

// --- Regular expressions: what the engine gets wrong is refused, here and for
// literals in the static check, which knows the same rules. ---
const RX = RegExp, getter = (o, k) => uncurry(getOwnPropertyDescriptor(o, k).get);
const sourceOf = getter(RX.prototype, "source"), folds = getter(RX.prototype, "ignoreCase"), usesSets = getter(RX.prototype, "unicodeSets");
const unit = uncurry(String.prototype.charCodeAt), find = uncurry(String.prototype.indexOf), { match } = Sym;
const cased = /^(?:(?:gc|General_Category)=)?(?:L[ult]|(?:Upper|Lower|Title)case(?:_Letter)?|Upper|Lower|Changes_When_(?:Lower|Upper|Title|(?:NFKC_)?Case).*|CW(?:L|U|T|CF|KCF))$/;
const optional = /^(?:\?|\{0,1\})/;
const repeats = /^(?:[*+]|\{(?:\d+,)?(?:\}|0*(?:[2-9]|[1-9]\d)))/;
const unsound = (s, fold) => {
  let g = { __proto__: null, up: null, split: false, captures: false, stale: false, capturing: false };
  for (let i = 0; i < s.length; i++) {
    switch (unit(s, i)) {
    case 92: // \
      if (fold && unit(s, i + 2) === 123 && (unit(s, i + 1) | 32) === 112 && exec(cased, slice(s, i + 3, find(s, "}", i))) !== null) {
        return "a property of letter case is wrong with the flag i; write it in brackets, [\\p{Lu}]";
      }
      i++;
      break;
    case 91: // [
      for (i++; i < s.length && unit(s, i) !== 93; i++) if (unit(s, i) === 92) i++;
      break;
    case 124: // |
      g.split = true;
      break;
    case 40: { // (
      const named = unit(s, i + 2) === 60 && unit(s, i + 3) !== 61 && unit(s, i + 3) !== 33;
      g = { __proto__: null, up: g, split: false, captures: false, stale: false, capturing: unit(s, i + 1) !== 63 || named };
      break;
    }
    case 41: { // )
      const { up, split, captures, stale, capturing } = g, after = slice(s, i + 1, i + 12);
      let now = stale || split && captures;
      if (now && exec(optional, after) !== null) now = false; // the engine forgets here
      if (now && exec(repeats, after) !== null) {
        return "a group in an alternative that is repeated would keep an old value; use (?:...) there, or match one repetition at a time";
      }
      g = up;
      g.stale = g.stale || now;
      g.captures = g.captures || captures || capturing;
    }
    }
  }
  return "";
};
const isRegExp = (v) => {
  if (!isObject(v)) return false;
  const m = v[match];
  if (m !== undefined) return !!m;
  try { folds(v); return true; } catch { return false; }
};
delete RX.prototype.compile;
const NewRegExp = succeed(RX, "RegExp", 2, { RegExp: function (pattern, flags) {
  let target = new.target;
  if (target === undefined) {
    if (flags === undefined && isRegExp(pattern) && pattern.constructor === NewRegExp) return pattern;
    target = NewRegExp;
  }
  const r = construct(RX, [pattern, flags], target);
  const why = usesSets(r) ? "the flag v is not available" : unsound(sourceOf(r), folds(r));
  if (why !== "") throw new SE("bad regular expression: " + why);
  return r;
} }.RegExp);
