import { mayRead, type ParsedQueue, parseQueue, type Reader } from '../aside.ts';
import { plain } from './connection/arrays.ts';

interface AsideRow {
  readonly id: number;
  /** The queue of the partitions. */
  readonly text: string;
  readonly parsed: ParsedQueue;
}

/** The number of no row, so that the next claim is told of all rows. */
const NOT_READ = 0;

/** What this process knows of the table `asides`: a claim says so, and is told when there is something else in it. */
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
    const isReadable = ({ parsed: { aside } }: AsideRow): boolean =>
      aside !== null && mayRead(reader, aside.name, aside);
    return [...queues, ...rows.filter(isReadable).map(({ text }) => text)];
  }

  /** `text`: all rows of these queues, as JSON. */
  set(queues: readonly string[], text: string): void {
    const rows = (JSON.parse(text) as [number, string][]).map(([id, aside]): AsideRow => {
      return { id, text: aside, parsed: parseQueue(aside) };
    });
    for (const queue of queues) {
      const own = rows.filter(({ parsed }) => parsed.queue === queue);
      if (own.length > 0) this.#byQueue.set(queue, own);
      else this.#byQueue.delete(queue);
    }
  }

  /** This process has put a job into a partition under this queue: claims need not be told of it first. */
  add(text: string): void {
    const parsed = parseQueue(text);
    const rows = this.#byQueue.get(parsed.queue) ?? [];
    if (rows.some((row) => row.text === text)) return;
    this.#byQueue.set(parsed.queue, [...rows, { id: NOT_READ, text, parsed }]);
  }

  #of(queues: readonly string[]): readonly AsideRow[] {
    return this.#byQueue.size === 0 ? [] : queues.flatMap((queue) => this.#byQueue.get(queue) ?? []);
  }
}
