import { onTestFailed } from 'vitest';
import { VirtualClock } from '../../src/testing/index.ts';

/** Chance that can be repeated: when the test fails it says how. */
export function chance(): Chance {
  const seed = Number(process.env.MULLIGAN_FAULTS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  onTestFailed(() => console.error(`To repeat the same choices: MULLIGAN_FAULTS_SEED=${seed}`));
  return new Chance(seed);
}

export class Chance {
  readonly #clock: VirtualClock;

  constructor(seed: number) {
    this.#clock = new VirtualClock({ seed });
  }

  /** A number from `low` to `high`. */
  between(low: number, high: number): number {
    return low + this.#clock.random() * (high - low);
  }

  index(length: number): number {
    return Math.floor(this.#clock.random() * length);
  }

  oneOf<T>(things: readonly T[]): T {
    return things[this.index(things.length)] as T;
  }
}
