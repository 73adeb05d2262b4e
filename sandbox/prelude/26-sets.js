// --- Four methods of sets, again: the engine's own keep every value for ever. ---
const S = Set, SP = S.prototype, sizeOf = getter(SP, "size");
const hasIn = uncurry(SP.has), addTo = uncurry(SP.add), dropFrom = uncurry(SP.delete), walk = uncurry(SP.values);
const stepSet = uncurry(getPrototypeOf(new S().values()).next);
// each stops at nothing; it sees what is added while it runs, as the language says.
const each = (set, f) => { for (let w = walk(set), r; !(r = stepSet(w)).done;) f(r.value); };
const copyOf = (set) => { const c = new S(); each(set, (v) => addTo(c, v)); return c; };
const setLike = (o) => {
  const n = +own(o).size;
  if (n !== n) throw new TE("the size is not a number");
  const size = trunc(n);
  if (size < 0) throw new RE("the size is negative");
  const { has, keys } = o;
  callable(has);
  callable(keys);
  return { __proto__: null, size, has: (v) => !!apply(has, o, [v]), keys: () => source(own(apply(keys, o, []))) };
};
const eachKey = (s, f) => { for (let v; (v = pull(s)) !== DONE;) f(v); };
replace(SP, {
  union(other) {
    sizeOf(this);
    const keys = setLike(other).keys(), r = copyOf(this);
    eachKey(keys, (v) => addTo(r, v));
    return r;
  },
  intersection(other) {
    const n = sizeOf(this), o = setLike(other), r = new S();
    if (n <= o.size) each(this, (v) => { if (o.has(v)) addTo(r, v); });
    else eachKey(o.keys(), (v) => { if (hasIn(this, v)) addTo(r, v); });
    return r;
  },
  difference(other) {
    const n = sizeOf(this), o = setLike(other);
    if (n <= o.size) {
      const r = copyOf(this);
      each(this, (v) => { if (o.has(v)) dropFrom(r, v); });
      return r;
    }
    const keys = o.keys(), r = copyOf(this);
    eachKey(keys, (v) => dropFrom(r, v));
    return r;
  },
  symmetricDifference(other) {
    sizeOf(this);
    const keys = setLike(other).keys(), r = copyOf(this);
    eachKey(keys, (v) => { if (hasIn(this, v)) dropFrom(r, v); else addTo(r, v); });
    return r;
  },
});
