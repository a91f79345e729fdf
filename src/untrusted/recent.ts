const MOST = 100;
const LONGEST_KEY = 10_000;

/** What was made of the last few texts. */
export class Recent<Value> {
  readonly #known: Map<string, Value> = new Map();

  get(text: string): Value | undefined {
    return this.#known.get(text);
  }

  /** Answers `value`. */
  add(text: string, value: Value): Value {
    if (text.length > LONGEST_KEY) return value;
    if (this.#known.size >= MOST) this.#known.clear();
    this.#known.set(text, value);
    return value;
  }
}
