import { countThatFits, type PartBounds } from './parts.ts';

/** What a batcher calls with the fate of each item. Neither callback may throw. */
export interface BatchCallbacks<Item, Answer> {
  answered(item: Item, answer: Answer): void;
  failed(item: Item, error: unknown): void;
}

/** What one call of a batcher may carry. */
export interface BatchBounds<Item> extends PartBounds<Item> {
  readonly limit: number;
}

export interface BatcherOptions<Item> extends BatchBounds<Item> {
  /** Waited for before each call, to let more items in; by default it is the rest of the tick. */
  readonly gather?: () => Promise<void>;
}

/**
 * Group commit: items that are added in one tick travel as one call, and while a call is under way the next ones gather.
 * Each item gets its own answer, or the error of the call that carried it.
 */
export class Batcher<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #callbacks: BatchCallbacks<Item, Answer>;
  readonly #bounds: BatchBounds<Item>;
  readonly #gather: () => Promise<void>;
  #waiting: Item[] = [];
  #sending: Promise<void> | null = null;

  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    callbacks: BatchCallbacks<Item, Answer>,
    { gather = async () => {}, ...bounds }: BatcherOptions<Item>,
  ) {
    this.#send = send;
    this.#callbacks = callbacks;
    this.#bounds = bounds;
    this.#gather = gather;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when nothing waits and nothing is under way. */
  async settled(): Promise<void> {
    while (this.#sending) await this.#sending;
  }

  async #sendAll(): Promise<void> {
    await this.#gather();
    while (this.#waiting.length > 0) {
      await this.#sendSome(this.#waiting.splice(0, countThatFits(this.#waiting, 0, this.#bounds)));
      // Callers that were just answered may add at once; let them in before the next call.
      await this.#gather();
    }
    this.#sending = null;
  }

  async #sendSome(items: readonly Item[]): Promise<void> {
    let answers: readonly Answer[];
    try {
      answers = allAnswers(items, await this.#send(items));
    } catch (error) {
      for (const item of items) this.#callbacks.failed(item, error);
      return;
    }
    for (const [at, item] of items.entries()) this.#callbacks.answered(item, answers[at] as Answer);
  }
}

function allAnswers<Answer>(items: readonly unknown[], answers: readonly Answer[]): readonly Answer[] {
  if (answers.length === items.length) return answers;
  throw new TypeError(`expected ${items.length} answers, got ${answers.length}`);
}

/** What one caller adds at once: it stays together, in its order. */
export interface BatchRequest<Item, Answer> {
  readonly items: readonly Item[];
  readonly bytes: number;
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** The bounds of the requests of a batch, when these are the bounds of its items. */
export function boundsOfRequests<Item>({
  limit,
  maxBytes,
}: BatchBounds<Item>): BatchBounds<Pick<BatchRequest<Item, unknown>, 'items' | 'bytes'>> {
  return {
    limit,
    sizeOf: ({ items }) => items.length,
    ...(maxBytes === undefined ? {} : { maxBytes, bytesOf: ({ bytes }) => bytes }),
  };
}

/** Sends the items of several requests as one call, and gives each request the answers to its own items. */
export function sendTogether<Item, Answer>(
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
): (requests: readonly Pick<BatchRequest<Item, Answer>, 'items'>[]) => Promise<(readonly Answer[])[]> {
  return async (requests) => {
    const all = requests.flatMap(({ items }) => items);
    const answers = allAnswers(all, await send(all));
    let from = 0;
    return requests.map(({ items }) => {
      from += items.length;
      return answers.slice(from - items.length, from);
    });
  };
}

/** The bytes of all items together. */
export function totalBytes<Item>(items: readonly Item[], { bytesOf }: BatchBounds<Item>): number {
  return bytesOf === undefined ? 0 : items.reduce((sum, item) => sum + bytesOf(item), 0);
}

/** A batcher for callers that wait for their answers. */
export class Batch<Item, Answer> {
  readonly #bounds: BatchBounds<Item>;
  readonly #batcher: Batcher<BatchRequest<Item, Answer>, readonly Answer[]>;

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, bounds: BatchBounds<Item>) {
    this.#bounds = bounds;
    this.#batcher = new Batcher<BatchRequest<Item, Answer>, readonly Answer[]>(
      sendTogether(send),
      { answered: ({ resolve }, answers) => resolve(answers), failed: ({ reject }, error) => reject(error) },
      boundsOfRequests(bounds),
    );
  }

  add(items: readonly Item[]): Promise<readonly Answer[]> {
    const bytes = totalBytes(items, this.#bounds);
    return new Promise((resolve, reject) => this.#batcher.add({ items, bytes, resolve, reject }));
  }
}
