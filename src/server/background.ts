import type { Logger } from '../observe/log.ts';

/** What goes on after its request was answered. The server ends it before it closes. */
export class Background {
  readonly #running: Set<Promise<void>> = new Set();
  readonly #log: Logger;
  readonly #closing: AbortSignal;
  readonly #onEnd: () => void;

  constructor(log: Logger, closing: AbortSignal, onEnd: () => void) {
    this.#log = log;
    this.#closing = closing;
    this.#onEnd = onEnd;
  }

  /**
   * Answers what `work` passes to `begun`, or ends with, whichever is first. A failure before that is the caller's; one after
   * it is logged.
   */
  start<T>(work: (begun: (value: T) => void) => Promise<T>): Promise<T> {
    const first = Promise.withResolvers<T>();
    let isAnswered = false;
    const answer = (value: T): void => {
      isAnswered = true;
      first.resolve(value);
    };
    const running = work(answer)
      .then(answer, (error: unknown) => {
        if (!isAnswered) first.reject(error);
        else if (!this.#closing.aborted) this.#log.warn('a bulk action stopped; it can be resumed', { error });
      })
      .finally(() => {
        this.#running.delete(running);
        this.#onEnd();
      });
    this.#running.add(running);
    return first.promise;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running);
  }
}
