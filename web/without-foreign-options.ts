/* What the pages have in the place of src/foreign-options.ts: options of another queue are not written there. */

export function ourNameFor(): null {
  return null;
}
