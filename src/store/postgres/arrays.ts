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
