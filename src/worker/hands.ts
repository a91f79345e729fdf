import type { Hand } from './hand.ts';

/**
 * The jobs in hand. No Set: one that is filled and emptied without end leaves a chain of outgrown tables behind, each
 * of which knows the next, and through which the garbage collector takes every finished job for a living one.
 */
export class Hands {
  readonly #all: Hand[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(hand: Hand): void {
    hand.place = this.#all.length;
    this.#all.push(hand);
  }

  delete(hand: Hand): void {
    const last = this.#all.pop() as Hand;
    if (last === hand) return;
    this.#all[hand.place] = last;
    last.place = hand.place;
  }

  /** A copy, so that hands may come and go meanwhile. */
  list(): Hand[] {
    return [...this.#all];
  }
}
