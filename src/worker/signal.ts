import type { Clock, Timer } from '../clock.ts';

/** Wakes one waiter. A notification that comes while none waits is kept, so that it is not missed. */
export class Signal {
  readonly #clock: Clock;
  #notified = false;
  #wake: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    if (this.#wake) this.#wake();
    else this.#notified = true;
  }

  /** Until notified, or for `timeoutMs`. */
  wait(timeoutMs: number): Promise<void> {
    if (this.#notified) {
      this.#notified = false;
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
