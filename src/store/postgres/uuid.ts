const SHAPE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** As ids are written here; whatever is not one is the id of no job. */
export function isUuid(text: string): boolean {
  return SHAPE.test(text);
}
