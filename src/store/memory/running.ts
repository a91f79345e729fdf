import { isRetry } from '../../job.ts';
import type { Row } from './row.ts';

/** The running jobs, and how many retries and suspects of each queue are among them. */
export class Running {
  readonly #rows: Set<Row> = new Set();
  readonly #retries: Map<string, number> = new Map();
  readonly #suspects: Map<string, number> = new Map();

  [Symbol.iterator](): Iterator<Row> {
    return this.#rows.values();
  }

  retries(queue: string): number {
    return this.#retries.get(queue) ?? 0;
  }

  suspects(queue: string): number {
    return this.#suspects.get(queue) ?? 0;
  }

  add(row: Row): void {
    this.#rows.add(row);
    this.#count(row, 1);
  }

  remove(row: Row): void {
    this.#rows.delete(row);
    this.#count(row, -1);
  }

  #count({ queue, lane }: Row, change: number): void {
    if (isRetry(lane)) this.#retries.set(queue, this.retries(queue) + change);
    if (lane === 'suspect') this.#suspects.set(queue, this.suspects(queue) + change);
  }
}
