import type { Clock, Timer } from '../clock.ts';

/** Something to do again and again, with a pause between one end and the next start, until stopped. */
export class Chore {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #work: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #timer: Timer | null = null;
  #stopped = false;
  #underWay: Promise<void> = Promise.resolve();

  constructor(clock: Clock, everyMs: number, work: () => Promise<void>, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#work = work;
    this.#onError = onError;
  }

  start(): void {
    if (this.#stopped) return;
    // Jittered, so that workers started together do not all come at once.
    this.#timer = this.#clock.after(this.#everyMs * (0.5 + this.#clock.random()), () => {
      this.#underWay = this.#work()
        .catch(this.#onError)
        .finally(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#underWay;
  }
}
