// want: [313024988,25000]
class Shape {
  #id;
  static made = 0;
  constructor(id) {
    this.#id = id;
    Shape.made++;
  }
  get id() { return this.#id; }
  area() { return 0; }
  describe() { return this.id + this.area(); }
}
class Rect extends Shape {
  constructor(id, w, h) {
    super(id);
    this.w = w;
    this.h = h;
  }
  area() { return this.w * this.h; }
}
class Square extends Rect {
  constructor(id, a) { super(id, a, a); }
  area() { return super.area() + 1; }
}
function* shapes(n) {
  for (let i = 0; i < n; i++) yield i % 2 ? new Rect(i, i % 10, 3) : new Square(i, i % 7);
}
function main(input) {
  let sum = 0;
  for (const s of shapes(25000)) {
    const { w, ...rest } = s;
    sum += s.describe() + w + rest.h;
  }
  return [sum, Shape.made];
}
