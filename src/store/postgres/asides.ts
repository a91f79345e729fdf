import { MARK, mayRead, parseQueue, type Reader } from '../aside.ts';
import { type ParsedLimitedQueue, parseLimitedQueue } from '../limited-queue.ts';
import { plain } from './connection/arrays.ts';

interface AsideRow {
  readonly id: number;
  /** The queue of the partitions. */
  readonly text: string;
  readonly parsed: ParsedLimitedQueue;
}

/** What `limitedQueue` makes has so many parts. */
const LIMITED_PARTS = 5;

/** The queue that a partition is under, whatever it was made by. */
export function parseUnder(text: string): ParsedLimitedQueue {
  return text.split(MARK).length < LIMITED_PARTS ? { ...parseQueue(text), limits: [] } : parseLimitedQueue(text);
}

/** The number of no row, so that the next claim is told of all rows. */
const NOT_READ = 0;

/** What this process knows of the tables `asides` and `limited_queues`: a claim says so, and is told when there is something else in them. */
export class Asides {
  readonly #byQueue: Map<string, readonly AsideRow[]> = new Map();

  /** The numbers of all rows of these queues, as an array literal. */
  known(queues: readonly string[]): string {
    return plain(
      this.#of(queues)
        .map(({ id }) => id)
        .sort((a, b) => a - b),
    );
  }

  /** The queues whose partitions a worker may read: these, and those of jobs aside that it knows. */
  readable(queues: readonly string[], reader: Reader): readonly string[] {
    const rows = this.#of(queues);
    if (rows.length === 0) return queues;
    const read = rows.filter((row) => row.parsed.limits.length === 0 && isReadBy(row, reader));
    return [...queues, ...read.map(({ text }) => text)];
  }

  /** The queues of limited partitions that a worker may read. */
  limited(queues: readonly string[], reader: Reader): readonly string[] {
    return this.#of(queues)
      .filter((row) => row.parsed.limits.length > 0 && isReadBy(row, reader))
      .map(({ text }) => text);
  }

  /** `text`: all rows of these queues, as JSON. */
  set(queues: readonly string[], text: string): void {
    const rows = (JSON.parse(text) as [number, string][]).map(([id, aside]): AsideRow => {
      return { id, text: aside, parsed: parseUnder(aside) };
    });
    for (const queue of queues) {
      const own = rows.filter(({ parsed }) => parsed.queue === queue);
      if (own.length > 0) this.#byQueue.set(queue, own);
      else this.#byQueue.delete(queue);
    }
  }

  /** This process has put a job into a partition under this queue: claims need not be told of it first. */
  add(text: string): void {
    const parsed = parseUnder(text);
    const rows = this.#byQueue.get(parsed.queue) ?? [];
    if (rows.some((row) => row.text === text)) return;
    this.#byQueue.set(parsed.queue, [...rows, { id: NOT_READ, text, parsed }]);
  }

  #of(queues: readonly string[]): readonly AsideRow[] {
    return this.#byQueue.size === 0 ? [] : queues.flatMap((queue) => this.#byQueue.get(queue) ?? []);
  }
}

function isReadBy({ parsed: { aside } }: AsideRow, reader: Reader): boolean {
  return aside === null || mayRead(reader, aside.name, aside);
}
