/** A copy of plain data (objects, arrays, maps, sets); what is frozen is shared, since it cannot be changed. Much faster than structuredClone. */
export function copy<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return value.map(copy) as T;
  if (value instanceof Map) return new Map(Array.from(value, ([key, part]) => [key, copy(part)])) as T;
  if (value instanceof Set) return new Set(value) as T;
  const made: Record<string, unknown> = {};
  for (const key of Object.keys(value)) made[key] = copy((value as Record<string, unknown>)[key]);
  return made as T;
}
