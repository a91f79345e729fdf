import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Heap } from './heap.ts';

interface Item {
  readonly rank: number;
}

const newHeap = (): Heap<Item> => new Heap((a, b) => a.rank < b.rank);

function takeFirst(heap: Heap<Item>): Item | undefined {
  const first = heap.first();
  if (first) heap.remove(first);
  return first;
}

describe('Heap', () => {
  it('gives its items in order, whatever was taken from its middle', () => {
    // More come than go, or the heap would stay too small to be in disorder.
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('add' as const), rank: fc.nat(1_000) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat(200) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const heap = newHeap();
        let held: Item[] = [];
        const leave = (gone: Item | undefined): void => {
          held = held.filter((item) => item !== gone);
        };
        for (const one of steps) {
          if (one.kind === 'add') {
            const item = { rank: one.rank };
            heap.add(item);
            held.push(item);
          } else if (one.kind === 'take') {
            expect(heap.first()?.rank).toBe(held.length > 0 ? Math.min(...held.map((item) => item.rank)) : undefined);
            leave(takeFirst(heap));
          } else if (held.length > 0) {
            const item = held[one.at % held.length] as Item;
            expect(heap.remove(item)).toBe(true);
            expect(heap.remove(item)).toBe(false);
            leave(item);
          }
          expect(heap.size).toBe(held.length);
        }
        const rest: number[] = [];
        for (let item = takeFirst(heap); item; item = takeFirst(heap)) rest.push(item.rank);
        expect(rest).toEqual(held.map((item) => item.rank).sort((a, b) => a - b));
      }),
    );
  });
});
