/** What one call may carry, in number and in bytes; without bounds everything. A single item that is larger travels alone. */
export interface PartBounds<Item> {
  readonly limit?: number;
  /** How much of `limit` an item takes; 1 unless given. */
  readonly sizeOf?: (item: Item) => number;
  readonly maxBytes?: number;
  readonly bytesOf?: (item: Item) => number;
}

/** How many items of a list, beginning at `from`, go into one call: as many as the bounds allow, and at least one. */
export function countThatFits<Item>(items: readonly Item[], from: number, bounds: PartBounds<Item>): number {
  const { limit = Infinity, sizeOf = () => 1, maxBytes = Infinity, bytesOf = () => 0 } = bounds;
  let size = 0;
  let bytes = 0;
  for (let at = from; at < items.length; at++) {
    size += sizeOf(items[at] as Item);
    bytes += bytesOf(items[at] as Item);
    if ((size > limit || bytes > maxBytes) && at > from) return at - from;
  }
  return items.length - from;
}

/** A list as parts that each fit into one call, in order. */
export function partsOf<Item>(items: readonly Item[], bounds: PartBounds<Item>): (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  for (let from = 0; from < items.length; from += (parts.at(-1) as readonly Item[]).length) {
    parts.push(items.slice(from, from + countThatFits(items, from, bounds)));
  }
  return parts;
}
