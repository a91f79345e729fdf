import type { StatementSync } from 'node:sqlite';
import type { StoredError } from '../../retry/outcome.ts';
import { type Counts, counters, type ErrorChange, GROUP_KEPT_MS } from '../error-groups.ts';

const ADD = `
  INSERT INTO error_counts (fingerprint, queue, name, attempt, first_seen, last_seen, ${counters.join(', ')})
  VALUES (?, ?, ?, ?, ?, ?, ${counters.map(() => '?').join(', ')})
  ON CONFLICT DO UPDATE SET first_seen = coalesce(first_seen, excluded.first_seen),
    last_seen = coalesce(max(last_seen, excluded.last_seen), excluded.last_seen, last_seen),
    ${counters.map((counter) => `${counter} = ${counter} + excluded.${counter}`).join(', ')}`;
const ADD_SAMPLE = 'INSERT INTO error_samples (fingerprint, job, error) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';
const DELETE_OVER = `
  DELETE FROM error_counts WHERE fingerprint IN (
    SELECT fingerprint FROM error_counts GROUP BY fingerprint
    HAVING sum(failing) <= 0 AND sum(dead) <= 0 AND max(last_seen) < ?)`;
const DELETE_SAMPLES = 'DELETE FROM error_samples WHERE fingerprint NOT IN (SELECT fingerprint FROM error_counts)';

/** The connection, as far as it is needed here. */
interface Connection {
  /** Store time of the transaction under way. */
  readonly now: number;
  sql(text: string): StatementSync;
}

/** The job whose counters these are. */
export interface CountedJob {
  readonly homeQueue: number;
  readonly name: number;
}

interface Added extends CountedJob {
  readonly fingerprint: string;
  readonly attempt: number;
  seen: boolean;
  readonly counts: Counts;
}

/** Changes of one call to the counters of error groups, added up in memory and written once per counter row. */
export class ErrorCounts {
  readonly #session: Connection;
  readonly #added: Map<string, Added> = new Map();
  readonly #samples: Map<string, { readonly jobId: string; readonly error: StoredError }> = new Map();

  constructor(session: Connection) {
    this.#session = session;
  }

  add({ homeQueue, name }: CountedJob, changes: readonly ErrorChange[]): void {
    for (const { fingerprint, attempt, seen, counts } of changes) {
      const slot = `${fingerprint} ${homeQueue} ${name} ${attempt}`;
      let added = this.#added.get(slot);
      if (added === undefined) {
        const zeros = Object.fromEntries(counters.map((counter) => [counter, 0])) as Counts;
        added = { fingerprint, homeQueue, name, attempt, seen: false, counts: zeros };
        this.#added.set(slot, added);
      }
      added.seen ||= seen;
      for (const counter of Object.keys(counts) as (keyof Counts)[]) added.counts[counter] += counts[counter] as number;
    }
  }

  /** A job of a group changes its state without a run. */
  move(job: CountedJob, fingerprint: string | null, counts: Partial<Counts>): void {
    if (fingerprint !== null) this.add(job, [{ fingerprint, attempt: 0, seen: false, counts }]);
  }

  sample(fingerprint: string, jobId: string, error: StoredError): void {
    if (!this.#samples.has(fingerprint)) this.#samples.set(fingerprint, { jobId, error });
  }

  /** At the end of a call. */
  write(): void {
    if (this.#added.size === 0) return;
    const { now } = this.#session;
    for (const { fingerprint, homeQueue, name, attempt, seen, counts } of this.#added.values()) {
      const amounts = counters.map((counter) => counts[counter]);
      if (!seen && amounts.every((amount) => amount === 0)) continue;
      const at = seen ? now : null;
      this.#session.sql(ADD).run(fingerprint, homeQueue, name, attempt, at, at, ...amounts);
    }
    for (const [fingerprint, { jobId, error }] of this.#samples) {
      this.#session.sql(ADD_SAMPLE).run(fingerprint, jobId, JSON.stringify(error));
    }
    this.forget();
  }

  /** Deletes groups in which no job was left for a while. */
  prune(): void {
    const { changes } = this.#session.sql(DELETE_OVER).run(this.#session.now - GROUP_KEPT_MS);
    if (changes > 0) this.#session.sql(DELETE_SAMPLES).run();
  }

  forget(): void {
    this.#added.clear();
    this.#samples.clear();
  }
}
