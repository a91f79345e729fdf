import type { Lane } from '../../job.ts';
import { Heap } from './heap.ts';
import type { Row } from './row.ts';

const byDueTime = (a: Row, b: Row): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.accepted < b.accepted);
const byPriority = (a: Row, b: Row): boolean =>
  a.priority < b.priority || (a.priority === b.priority && byDueTime(a, b));

/** The waiting jobs of one lane of one queue: those that are due in the order they will be taken, and the others. */
class WaitingLane {
  readonly #due: Heap<Row> = new Heap(byPriority);
  readonly #later: Heap<Row> = new Heap(byDueTime);
  #sortedAt = Number.NEGATIVE_INFINITY;

  add(row: Row): void {
    this.#later.add(row);
  }

  remove(row: Row): void {
    if (!this.#due.remove(row)) this.#later.remove(row);
  }

  firstDue(now: number): Row | undefined {
    this.#sort(now);
    return this.#due.first();
  }

  nextDueAt(now: number): number | null {
    this.#sort(now);
    return this.#later.first()?.dueAt ?? null;
  }

  #sort(now: number): void {
    // A wall clock may step back; then what was due is not due any more.
    if (now < this.#sortedAt) {
      for (const row of this.#due.items().filter((row) => row.dueAt > now)) {
        this.#due.remove(row);
        this.#later.add(row);
      }
    }
    this.#sortedAt = now;
    for (let row = this.#later.first(); row && row.dueAt <= now; row = this.#later.first()) {
      this.#later.remove(row);
      this.#due.add(row);
    }
  }
}

/** All waiting jobs, so that a claim looks at no other: its cost does not grow with what runs or has ended. */
export class Waiting {
  readonly #queues: Map<string, Map<Lane, WaitingLane>> = new Map();

  add(row: Row): void {
    const lanes = this.#queues.get(row.queue) ?? new Map<Lane, WaitingLane>();
    const lane = lanes.get(row.lane) ?? new WaitingLane();
    this.#queues.set(row.queue, lanes.set(row.lane, lane));
    lane.add(row);
  }

  remove(row: Row): void {
    this.#queues.get(row.queue)?.get(row.lane)?.remove(row);
  }

  firstDue(queue: string, lane: Lane, now: number): Row | undefined {
    return this.#queues.get(queue)?.get(lane)?.firstDue(now);
  }

  /** The earliest due time after now, over these queues. */
  nextDueAt(queues: readonly string[], now: number): number | null {
    let next: number | null = null;
    for (const queue of queues) {
      for (const lane of this.#queues.get(queue)?.values() ?? []) {
        const dueAt = lane.nextDueAt(now);
        if (dueAt !== null && (next === null || dueAt < next)) next = dueAt;
      }
    }
    return next;
  }
}
