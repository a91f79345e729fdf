/** Who is told what became of an item. Neither may throw. */
export interface Told<Item, Answer> {
  answered(item: Item, answer: Answer): void;
  failed(item: Item, error: unknown): void;
}

export interface FlightPlan<Item> {
  /** No flight takes more, unless one item alone is larger. */
  readonly limit: number;
  readonly sizeOf?: (item: Item) => number;
  /** Waited for before each flight, to let more items in; by default it is the rest of the tick. */
  readonly gather?: () => Promise<void>;
}

/**
 * Group commit: whatever is added in one tick travels as one call, and while a call is under way the next ones gather.
 * Each item gets its own answer, or the error of the call that carried it.
 */
export class Flights<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #told: Told<Item, Answer>;
  readonly #plan: Required<FlightPlan<Item>>;
  #waiting: Item[] = [];
  #flying: Promise<void> | null = null;

  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    told: Told<Item, Answer>,
    plan: FlightPlan<Item>,
  ) {
    this.#send = send;
    this.#told = told;
    this.#plan = { sizeOf: () => 1, gather: async () => {}, ...plan };
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
    await this.#plan.gather();
    while (this.#waiting.length > 0) {
      const items = this.#load();
      try {
        const answers = await this.#send(items);
        for (let at = 0; at < items.length; at++) this.#told.answered(items[at] as Item, answers[at] as Answer);
      } catch (error) {
        for (const item of items) this.#told.failed(item, error);
      }
      // Callers that were just answered may add at once; let them in before the next flight leaves.
      await this.#plan.gather();
    }
    this.#flying = null;
  }

  #load(): Item[] {
    const { limit, sizeOf } = this.#plan;
    let size = 0;
    let count = 0;
    for (const item of this.#waiting) {
      size += sizeOf(item);
      if (size > limit && count > 0) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }
}

/** What one caller adds at once stays together, in its order. */
export interface Asked<Item, Answer> {
  readonly items: readonly Item[];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** What several callers ask for goes as one call, and each gets the answers to its own items. */
export function sendTogether<Item, Answer>(
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
): (asked: readonly Asked<Item, Answer>[]) => Promise<(readonly Answer[])[]> {
  return async (asked) => {
    const answers = await send(asked.flatMap(({ items }) => items));
    let from = 0;
    return asked.map(({ items }) => {
      from += items.length;
      return answers.slice(from - items.length, from);
    });
  };
}

/** Flights for callers that wait for their answers. */
export class Batch<Item, Answer> {
  readonly #flights: Flights<Asked<Item, Answer>, readonly Answer[]>;

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, limit: number) {
    this.#flights = new Flights(
      sendTogether(send),
      { answered: ({ resolve }, answers) => resolve(answers), failed: ({ reject }, error) => reject(error) },
      { limit, sizeOf: ({ items }) => items.length },
    );
  }

  add(items: readonly Item[]): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => this.#flights.add({ items, resolve, reject }));
  }

  settled(): Promise<void> {
    return this.#flights.settled();
  }
}
