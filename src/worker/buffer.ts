import type { Hand } from './hand.ts';

/**
 * What is claimed and has not started. Fresh jobs go first, so that none waits behind a storm of second chances. Those
 * get their share all the same: claims bring them, and once they fill the room there is none for fresh ones.
 */
export class Buffer {
  readonly #fresh: Hand[] = [];
  readonly #second: Hand[] = [];

  get size(): number {
    return this.#fresh.length + this.#second.length;
  }

  add(hand: Hand): void {
    const list = hand.lease.job.lane === 'fresh' ? this.#fresh : this.#second;
    list.push(hand);
  }

  take(count: number): Hand[] {
    const taken = this.#fresh.splice(0, count);
    if (taken.length < count) taken.push(...this.#second.splice(0, count - taken.length));
    return taken;
  }
}
