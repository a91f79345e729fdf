/**
 * A binary heap that can also give up an item from its middle in O(log n): a cancelled job must not
 * stay behind among the waiting ones until its turn would have come.
 */
export class Heap<T> {
  readonly #before: (a: T, b: T) => boolean;
  readonly #items: T[] = [];
  readonly #places: Map<T, number> = new Map();

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  first(): T | undefined {
    return this.#items[0];
  }

  /** In no useful order. */
  items(): readonly T[] {
    return this.#items;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  remove(item: T): boolean {
    const place = this.#places.get(item);
    if (place === undefined) return false;
    this.#places.delete(item);
    const last = this.#items.pop() as T;
    if (last !== item) {
      this.#rise(last, place);
      this.#sink(last);
    }
    return true;
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }

  #rise(item: T, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#before(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #sink(item: T): void {
    let place = this.#places.get(item) as number;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#items.length) break;
      const right = below + 1;
      if (right < this.#items.length && this.#before(this.#items[right] as T, this.#items[below] as T)) below = right;
      const child = this.#items[below] as T;
      if (!this.#before(child, item)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }
}
