/*
 * Columns travel as array literals, which the server takes apart with unnest: a statement of any number of rows has
 * one text and few parameters. Written here because the driver's own way looks at every element's type.
 */

/** Numbers, booleans and uuids: nothing in them needs quoting. */
export function plain(values: readonly (number | boolean | string | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

export function texts(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quote(value))).join(',')}}`;
}

/** What the server answers: uuids or numbers, none of them null. */
export function elements(literal: string): string[] {
  return literal.slice(1, -1).split(',');
}

const COMMA = 44;
const MINUS = 45;
const ZERO = 48;
const N_OF_NULL = 78;

/**
 * Whole numbers, one after the other also when they come in rows. Read digit by digit: an answer has thousands of them, and
 * no text is made of any.
 */
export function numbersOrNull(literal: string | null): (number | null)[] {
  const read: (number | null)[] = [];
  if (literal === null || literal === '{}') return read;
  let value: number | null = 0;
  let sign = 1;
  for (let at = 1; at < literal.length; at++) {
    const code = literal.charCodeAt(at);
    if (code >= ZERO && code < ZERO + 10) value = (value as number) * 10 + (code - ZERO);
    else if (code === MINUS) sign = -1;
    else if (code === N_OF_NULL) {
      value = null;
      at += 'ULL'.length;
    } else if (code === COMMA || at === literal.length - 1) {
      read.push(value === null ? null : sign * value);
      value = 0;
      sign = 1;
    }
  }
  return read;
}

function quote(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}

/** JSON texts of which many are alike: each is sent once, and rows hold its position, from 1. */
export class TextList<Value extends object> {
  readonly #positions: Map<string, number> = new Map();
  /** Often they are the very same object, whose text need not be made again. */
  readonly #known: Map<Value, number> = new Map();

  add(value: Value): number {
    let position = this.#known.get(value);
    if (position !== undefined) return position;
    const text = JSON.stringify(value);
    position = this.#positions.get(text) ?? this.#positions.size + 1;
    this.#positions.set(text, position);
    this.#known.set(value, position);
    return position;
  }

  /** Once all have been added. */
  get literal(): string {
    return texts([...this.#positions.keys()]);
  }
}
