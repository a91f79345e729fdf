import type { Clock, Timer } from '../clock.ts';

/** Wakes one waiter. A notice that comes while nobody waits is kept, so it cannot be missed between two looks. */
export class Signal {
  readonly #clock: Clock;
  #noticed = false;
  #wake: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    if (this.#wake) this.#wake();
    else this.#noticed = true;
  }

  /** Until notified, or for `timeoutMs`. */
  wait(timeoutMs: number): Promise<void> {
    if (this.#noticed) {
      this.#noticed = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      let timer: Timer | null = null;
      this.#wake = () => {
        timer?.cancel();
        this.#wake = null;
        resolve();
      };
      timer = this.#clock.after(timeoutMs, this.#wake);
    });
  }
}
