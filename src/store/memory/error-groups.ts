import type { StoredError } from '../../retry/outcome.ts';
import {
  type Counts,
  counters,
  type ErrorChange,
  type ErrorCount,
  type ErrorGroup,
  type ErrorGroupFilter,
  type ErrorSample,
  isOver,
  isWanted,
  toErrorGroups,
} from '../error-groups.ts';
import { kept, type Row } from './row.ts';

type MutableCount = { -readonly [Field in keyof ErrorCount]: ErrorCount[Field] };

/** The counters of error groups, by fingerprint, queue, name and attempt. */
export class ErrorGroups {
  readonly #counts: Map<string, MutableCount> = new Map();
  readonly #samples: Map<string, ErrorSample> = new Map();

  add(row: Row, changes: readonly ErrorChange[], now: number): void {
    for (const { fingerprint, attempt, seen, counts } of changes) {
      const count = this.#countOf(fingerprint, row, attempt);
      if (seen) {
        count.firstSeenAt ??= now;
        count.lastSeenAt = Math.max(now, count.lastSeenAt ?? now);
      }
      for (const counter of counters) count[counter] += counts[counter] ?? 0;
    }
  }

  /** A job of this group changes its state without a run. */
  move(row: Row, counts: Partial<Counts>): void {
    const { fingerprint } = row;
    if (fingerprint !== null) this.add(row, [{ fingerprint, attempt: 0, seen: false, counts }], 0);
  }

  sample(fingerprint: string, jobId: string, error: StoredError): void {
    if (!this.#samples.has(fingerprint)) this.#samples.set(fingerprint, { jobId, error: kept(error) });
  }

  list(filter: ErrorGroupFilter): ErrorGroup[] {
    const { name, queue, limit } = filter;
    const counts = [...this.#counts.values()].filter(
      (count) => (name === undefined || count.name === name) && (queue === undefined || count.queue === queue),
    );
    return toErrorGroups(counts, (fingerprint) => this.#samples.get(fingerprint) ?? null)
      .filter((group) => isWanted(group, filter))
      .slice(0, limit);
  }

  prune(now: number): void {
    for (const [fingerprint, counts] of Map.groupBy(this.#counts, ([, count]) => count.fingerprint)) {
      if (
        !isOver(
          counts.map(([, count]) => count),
          now,
        )
      )
        continue;
      for (const [slot] of counts) this.#counts.delete(slot);
      this.#samples.delete(fingerprint);
    }
  }

  #countOf(fingerprint: string, { homeQueue: queue, name }: Row, attempt: number): MutableCount {
    const slot = JSON.stringify([fingerprint, queue, name, attempt]);
    let count = this.#counts.get(slot);
    if (count === undefined) {
      const zeros = Object.fromEntries(counters.map((counter) => [counter, 0])) as Counts;
      count = { fingerprint, queue, name, attempt, firstSeenAt: null, lastSeenAt: null, ...zeros };
      this.#counts.set(slot, count);
    }
    return count;
  }
}
