// --- Iterator helpers, again: the engine's own call a method return that the
// source does not have, and keep every value that they have passed on. ---
const IP = Iterator.prototype, HP = getPrototypeOf(uncurry(IP.map)(new Map().values(), (x) => x));
const helpers = new WeakMap(), { iterator: atIterator } = Sym;
const own = (v) => { if (!isObject(v)) throw new TE("not an object"); return v; };
const callable = (f) => { if (typeof f !== "function") throw new TE("not a function"); };
const close = (it) => {
  const f = it.return;
  if (f !== undefined && f !== null) own(apply(f, it, []));
};
// What run throws closes it, and what that throws in turn is not heard.
const closing = (it, run, a, b) => {
  try { return run(a, b); } catch (e) {
    try { const f = it.return; if (f !== undefined && f !== null) apply(f, it, []); } catch {}
    throw e;
  }
};
// A source is { it, next }; DONE says that it has ended.
const DONE = freeze({ __proto__: null });
const source = (it) => ({ __proto__: null, it, next: it.next });
const pull = (s) => {
  const r = own(apply(s.next, s.it, []));
  return r.done ? DONE : r.value;
};
const flatten = (v) => {
  const f = own(v)[atIterator];
  if (f === undefined || f === null) return source(v);
  return source(own(apply(f, v, [])));
};
const limitOf = (v) => {
  v = +v;
  if (v !== v) throw new RE("must be a number");
  v = trunc(v);
  if (v < 0 || v > LENGTH && v !== Infinity) throw new RE("must be positive and not too large");
  return v;
};

// A helper waits at the start, waits after a value, runs, or has ended.
const START = 0, WAITS = 1, RUNS = 2, ENDED = 3;
const helper = (it, step, f, left) => {
  const h = create(HP), s = source(it);
  setWeak(helpers, h, { __proto__: null, source: s, step, f, left, count: 0, inner: null, state: START });
  return h;
};
const stateOf = (h) => {
  const s = getWeak(helpers, h);
  if (s === undefined) throw new TE("not an Iterator Helper");
  if (s.state === RUNS) throw new TE("the iterator is already running");
  return s;
};
replace(HP, {
  next() {
    const s = stateOf(this);
    if (s.state === ENDED) return { value: undefined, done: true };
    s.state = RUNS;
    let value = DONE;
    try { value = s.step(s); } finally { s.state = value === DONE ? ENDED : WAITS; }
    return value === DONE ? { value: undefined, done: true } : { value, done: false };
  },
  return() {
    const s = stateOf(this), was = s.state;
    if (was !== ENDED) {
      s.state = was === START ? ENDED : RUNS;
      try {
        if (s.inner !== null) closing(s.source.it, close, s.inner.it);
        close(s.source.it);
      } finally { s.state = ENDED; }
    }
    return { value: undefined, done: true };
  },
});
const stepMap = (s) => {
  const v = pull(s.source);
  return v === DONE ? v : closing(s.source.it, s.f, v, s.count++);
};
const stepFilter = (s) => {
  for (;;) {
    const v = pull(s.source);
    if (v === DONE || closing(s.source.it, s.f, v, s.count++)) return v;
  }
};
const stepTake = (s) => {
  if (s.left-- > 0) return pull(s.source);
  close(s.source.it);
  return DONE;
};
const stepDrop = (s) => {
  for (; s.left > 0; s.left--) {
    if (own(apply(s.source.next, s.source.it, [])).done) return DONE;
  }
  return pull(s.source);
};
const stepFlat = (s) => {
  for (;;) {
    if (s.inner !== null) {
      const v = closing(s.source.it, pull, s.inner);
      if (v !== DONE) return v;
      s.inner = null;
    }
    const v = pull(s.source);
    if (v === DONE) return v;
    s.inner = closing(s.source.it, () => flatten((0, s.f)(v, s.count++)));
  }
};
replace(IP, {
  map(mapper) { closing(own(this), callable, mapper); return helper(this, stepMap, mapper, 0); },
  filter(predicate) { closing(own(this), callable, predicate); return helper(this, stepFilter, predicate, 0); },
  take(limit) { const n = closing(own(this), limitOf, limit); return helper(this, stepTake, undefined, n); },
  drop(limit) { const n = closing(own(this), limitOf, limit); return helper(this, stepDrop, undefined, n); },
  flatMap(mapper) { closing(own(this), callable, mapper); return helper(this, stepFlat, mapper, 0); },
  find(predicate) {
    closing(own(this), callable, predicate);
    const s = source(this);
    for (let i = 0; ; i++) {
      const v = pull(s);
      if (v === DONE) return undefined;
      if (closing(this, predicate, v, i)) { close(this); return v; }
    }
  },
});
