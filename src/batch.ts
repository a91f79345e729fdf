/**
 * Group commit for callers: whatever is added in one tick travels as one call, and while a call is under way the
 * next ones gather. Each caller gets its own answer, or the error of the call that carried it.
 */
export class Batch<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #limit: number;
  readonly #gather: () => Promise<void>;
  #waiting: { item: Item; resolve: (answer: Answer) => void; reject: (error: unknown) => void }[] = [];
  #flying: Promise<void> | null = null;

  /** `gather` is waited for before each flight, to let more callers in; by default it is the rest of the tick. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    limit: number,
    gather: () => Promise<void> = async () => {},
  ) {
    this.#send = send;
    this.#limit = limit;
    this.#gather = gather;
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#flying ??= this.#fly();
    });
  }

  /** Resolves when nothing waits and nothing is under way. */
  async settled(): Promise<void> {
    while (this.#flying) await this.#flying;
  }

  async #fly(): Promise<void> {
    await this.#gather();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#limit);
      try {
        const answers = await this.#send(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      // Callers that were just answered may add at once; let them in before the next flight leaves.
      await this.#gather();
    }
    this.#flying = null;
  }
}
