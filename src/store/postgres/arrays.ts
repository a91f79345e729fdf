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

function quote(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}

/** Texts of which many are alike: each is sent once, and rows hold its position, from 1. */
export class TextList {
  readonly #positions: Map<string, number> = new Map();

  add(text: string): number {
    const known = this.#positions.get(text);
    if (known !== undefined) return known;
    this.#positions.set(text, this.#positions.size + 1);
    return this.#positions.size;
  }

  /** Once all have been added. */
  get literal(): string {
    return texts([...this.#positions.keys()]);
  }
}
