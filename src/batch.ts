/** Who is told what became of an item. Neither may throw. */
export interface Told<Item, Answer> {
  answered(item: Item, answer: Answer): void;
  failed(item: Item, error: unknown): void;
}

/**
 * Group commit: whatever is added in one tick travels as one call, and while a call is under way the next ones gather.
 * Each item gets its own answer, or the error of the call that carried it.
 */
export class Flights<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #limit: number;
  readonly #told: Told<Item, Answer>;
  readonly #gather: () => Promise<void>;
  #waiting: Item[] = [];
  #flying: Promise<void> | null = null;

  /** `gather` is waited for before each flight, to let more items in; by default it is the rest of the tick. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    limit: number,
    told: Told<Item, Answer>,
    gather: () => Promise<void> = async () => {},
  ) {
    this.#send = send;
    this.#limit = limit;
    this.#told = told;
    this.#gather = gather;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    this.#flying ??= this.#fly();
  }

  /** Resolves when nothing waits and nothing is under way. */
  async settled(): Promise<void> {
    while (this.#flying) await this.#flying;
  }

  async #fly(): Promise<void> {
    await this.#gather();
    while (this.#waiting.length > 0) {
      const items = this.#waiting.splice(0, this.#limit);
      try {
        const answers = await this.#send(items);
        let index = 0;
        for (const item of items) this.#told.answered(item, answers[index++] as Answer);
      } catch (error) {
        for (const item of items) this.#told.failed(item, error);
      }
      // Callers that were just answered may add at once; let them in before the next flight leaves.
      await this.#gather();
    }
    this.#flying = null;
  }
}

interface Asked<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Flights for callers that wait for their answer. */
export class Batch<Item, Answer> {
  readonly #flights: Flights<Asked<Item, Answer>, Answer>;

  /** As those of `Flights`. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    limit: number,
    gather?: () => Promise<void>,
  ) {
    const told: Told<Asked<Item, Answer>, Answer> = {
      answered: ({ resolve }, answer) => resolve(answer),
      failed: ({ reject }, error) => reject(error),
    };
    this.#flights = new Flights((asked) => send(asked.map(({ item }) => item)), limit, told, gather);
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => this.#flights.add({ item, resolve, reject }));
  }

  settled(): Promise<void> {
    return this.#flights.settled();
  }
}
