import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../src/clock.ts';
import { migrate } from '../src/store/sqlite/schema.ts';

/**
 * The limit to measure against: hand-written statements on node:sqlite, in one thread, that write what the queue
 * writes (job row and its indexes, claim, end, ledger row) with the same durability, and do nothing else: no fence
 * beyond the WHERE, no lanes, no policy, no decisions, no counts, no messages between threads.
 */
export class Raw {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000');
    migrate(this.#db);
  }

  enqueue(count: number, perCommit: number): void {
    const insert = this.#db.prepare(`
      INSERT INTO jobs (id, state, stream, lane, priority, due_at, available_at, enqueued_at, name, policy, home_stream,
        key_life, payload)
      VALUES (?, 1, 1, 0, 5, ?, ?, ?, 1, 2, 1, 1, ?)`);
    for (let done = 0; done < count; done += perCommit) {
      this.#db.exec('BEGIN IMMEDIATE');
      const now = Math.floor(systemClock.now());
      for (let n = done; n < Math.min(count, done + perCommit); n++) {
        insert.run(systemClock.newId(), now, now, now, JSON.stringify({ n }));
      }
      this.#db.exec('COMMIT');
    }
  }

  /** Claims and completes in batches; answers how many. */
  drain(perBatch: number): number {
    const claim = this.#db.prepare(`
      UPDATE jobs SET state = 3, runs = runs + 1, attempts = attempts + 1, worker = 3, claimed_at = ?1,
        lease_ends_at = ?2, first_started_at = coalesce(first_started_at, ?1)
      WHERE seq IN (SELECT seq FROM jobs WHERE state < 3 AND stream = 1 AND lane = 0 AND priority = 5 AND due_at <= ?1
        ORDER BY due_at, seq LIMIT ?3)
      RETURNING seq, id, runs, attempts, payload`);
    const end = this.#db.prepare(`
      UPDATE jobs SET state = 4, finished_at = ?, worker = NULL, lease_ends_at = NULL
      WHERE id = ? AND state = 3 AND runs = ? AND worker = 3`);
    const ledger = this.#db.prepare(`
      INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, decision)
      VALUES (?, ?, ?, 'completed', 1, 3, ?, ?, '{"kind":"complete","rule":"completed"}')`);
    for (let drained = 0; ; ) {
      const now = Math.floor(systemClock.now());
      this.#db.exec('BEGIN IMMEDIATE');
      const jobs = claim.all(now, now + 30_000, perBatch) as {
        seq: number;
        id: string;
        runs: number;
        attempts: number;
      }[];
      this.#db.exec('COMMIT');
      if (jobs.length === 0) return drained;
      this.#db.exec('BEGIN IMMEDIATE');
      for (const job of jobs) {
        end.run(now, job.id, job.runs);
        ledger.run(job.seq, job.runs, job.attempts, now, now);
      }
      this.#db.exec('COMMIT');
      drained += jobs.length;
    }
  }

  close(): void {
    this.#db.close();
  }
}
