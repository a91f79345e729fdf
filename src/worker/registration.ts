import type { Clock } from '../clock.ts';
import { SEEN_EVERY_MS, type Store, type WorkerDescription } from '../store/store.ts';
import { Chore } from './chores.ts';
import { answerWithin } from './persist.ts';

/** How long a worker that stops waits for the store: after that it is forgotten as if it had been killed. */
const GOODBYE_MS = 1_000;

/**
 * Tells the store that a worker lives: at its start, every so often, and once more when it has stopped. As often it adds what
 * has ended to the history.
 */
export class Registration {
  readonly #store: Pick<Store, 'register' | 'rollUp'>;
  readonly #clock: Clock;
  readonly #worker: string;
  readonly #describe: () => WorkerDescription;
  readonly #chore: Chore;
  #first: Promise<void> = Promise.resolve();
  #isStopping = false;

  constructor(
    store: Pick<Store, 'register' | 'rollUp'>,
    clock: Clock,
    worker: string,
    describe: () => WorkerDescription,
    onError: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#worker = worker;
    this.#describe = describe;
    this.#chore = new Chore(clock, SEEN_EVERY_MS, () => this.#tend(), onError);
  }

  start(): void {
    // Whether it is listed matters less than its work. When this fails, the chore tries again.
    this.#first = this.#register().catch(() => {});
    this.#chore.start();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([this.#first, this.#chore.stop()]);
    await answerWithin(this.#clock, GOODBYE_MS, this.#store.register(this.#worker, null)).catch(() => {});
  }

  async #tend(): Promise<void> {
    await this.#register();
    while (!this.#isStopping && !(await this.#store.rollUp()).isDone);
  }

  #register(): Promise<void> {
    return this.#store.register(this.#worker, this.#describe());
  }
}
