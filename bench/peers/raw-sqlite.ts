import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { systemClock } from '../../dist/clock.js';
import { sleep } from '../harness/measure.ts';
import type { Counts, Handler, OpenPeer, Payload, Peer, Running, WorkerOptions } from '../harness/peer.ts';

/*
 * The limit to measure against on SQLite: hand-written statements on node:sqlite, in one thread, that write what the
 * queue writes (job row and its indexes, claim, end, ledger row) with the same durability, and do nothing else: no
 * fence beyond the WHERE, no lanes, no policy, no decisions, no counts, no messages between threads.
 */
const BATCH = 500;
const IDLE_MS = 20;
const FILL_PART = 100_000;

/* The columns and indexes that a queue with a ledger needs; strings that repeat are numbers, as Mulligan stores them. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    state INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    worker INTEGER,
    claimed_at INTEGER,
    lease_ends_at INTEGER,
    first_started_at INTEGER,
    finished_at INTEGER,
    available_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    name INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    payload TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX IF NOT EXISTS jobs_id ON jobs (id);
  CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs (queue, lane, priority, due_at, seq) WHERE state < 3;
  CREATE INDEX IF NOT EXISTS jobs_running ON jobs (lease_ends_at, lane, queue) WHERE state = 3;
  CREATE INDEX IF NOT EXISTS jobs_finished ON jobs (state, finished_at) WHERE state > 3;

  CREATE TABLE IF NOT EXISTS runs (
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    counted INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    decision TEXT NOT NULL,
    PRIMARY KEY (job, run)
  ) STRICT, WITHOUT ROWID`;

export const rawSqlite: Peer = {
  id: 'raw-sqlite',
  title: `raw SQL on node:sqlite ${process.versions.sqlite}`,
  engine: 'sqlite',
  settings: `WAL, synchronous=FULL; claims and settles ${BATCH} at a time; one commit per single enqueue`,
  lacks: [
    'lanes, policies, totals, keys, cancelling, heartbeats, rescue, events, metrics: it is the limit, not a queue',
    'a free event loop: its statements run in the thread of the handlers',
  ],
  backoff: { smallest: 'none', fifty: '50 ms' },
  crashSettings: '-',
  skips: {
    W4: 'it polls on a timer, so its pickup time is whatever that timer says',
    W5: 'it knows one order, by due time',
    W7: 'it has nothing that notices a crash',
  },
  unavailable: async () => null,
  open: async ({ folder }, space) => new RawSqlite(join(folder, `${space}.db`)),
};

interface Claimed {
  readonly seq: number;
  readonly id: string;
  readonly runs: number;
  readonly attempts: number;
  readonly payload: string;
}

class RawSqlite implements OpenPeer {
  readonly #path: string;
  #db: DatabaseSync | undefined;
  #insert: StatementSync | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async reset(): Promise<void> {
    await this.close();
    await this.erase();
    this.#open();
  }

  async erase(): Promise<void> {
    for (const end of ['', '-wal', '-shm']) rmSync(this.#path + end, { force: true });
  }

  async connect(): Promise<void> {
    this.#open();
  }

  async enqueueOne(payload: Payload): Promise<void> {
    this.#add([payload], 5);
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    this.#add(payloads, 5);
  }

  async startWorker(handler: Handler, _options: WorkerOptions): Promise<Running> {
    const db = this.#open();
    const claim = db.prepare(`
      UPDATE jobs SET state = 3, runs = runs + 1, attempts = attempts + 1, worker = 3, claimed_at = ?1,
        lease_ends_at = ?2, first_started_at = coalesce(first_started_at, ?1)
      WHERE seq IN (SELECT seq FROM jobs WHERE state < 3 AND queue = 1 AND lane = 0 AND priority = ?4 AND due_at <= ?1
        ORDER BY due_at, seq LIMIT +?3)
      RETURNING seq, id, runs, attempts, payload`);
    const complete = db.prepare(`
      UPDATE jobs SET state = 4, finished_at = ?, worker = NULL, lease_ends_at = NULL
      WHERE id = ? AND state = 3 AND runs = ? AND worker = 3`);
    const retry = db.prepare(`
      UPDATE jobs SET state = 2, due_at = ?, worker = NULL, lease_ends_at = NULL
      WHERE id = ? AND state = 3 AND runs = ? AND worker = 3`);
    const ledger = db.prepare(`
      INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, decision)
      VALUES (?, ?, ?, ?, 1, 3, ?, ?, ?)`);
    const take = (): Claimed[] => {
      const now = Math.floor(systemClock.now());
      db.exec('BEGIN IMMEDIATE');
      const first = claim.all(now, now + 30_000, BATCH, 5);
      const jobs = first.length > 0 ? first : claim.all(now, now + 30_000, BATCH, 9);
      db.exec('COMMIT');
      return jobs as unknown as Claimed[];
    };
    let stopping = false;
    const work = async (): Promise<void> => {
      while (!stopping) {
        const jobs = take();
        const ended: { job: Claimed; failed: boolean }[] = [];
        for (const job of jobs) {
          try {
            const running = handler(JSON.parse(job.payload) as Payload);
            if (running) await running;
            ended.push({ job, failed: false });
          } catch {
            ended.push({ job, failed: true });
          }
        }
        if (ended.length > 0) {
          const now = Math.floor(systemClock.now());
          db.exec('BEGIN IMMEDIATE');
          for (const { job, failed } of ended) {
            (failed ? retry : complete).run(now, job.id, job.runs);
            const [outcome, decision] = failed
              ? ['failed', '{"kind":"retry","rule":"default"}']
              : ['completed', '{"kind":"complete","rule":"completed"}'];
            ledger.run(job.seq, job.runs, job.attempts, outcome as string, now, now, decision as string);
          }
          db.exec('COMMIT');
        }
        await (jobs.length === 0 ? sleep(IDLE_MS) : new Promise((resolve) => setImmediate(resolve)));
      }
    };
    const loop = work();
    return {
      stop: async () => {
        stopping = true;
        await loop;
      },
    };
  }

  async counts(): Promise<Counts> {
    const count = (where: string): number =>
      (this.#open().prepare(`SELECT count(*) AS count FROM jobs WHERE ${where}`).get() as { count: number }).count;
    return { waiting: count('state < 3'), running: count('state = 3'), dead: 0 };
  }

  async fillWaiting(count: number): Promise<void> {
    const payload: Payload = { n: -1, kind: 'noop', sentAt: 0 };
    const part = Array.from({ length: 50_000 }, () => payload);
    for (let left = count; left > 0; left -= part.length) this.#add(part.slice(0, left), 9);
  }

  async fillFinished(count: number): Promise<string | null> {
    const db = this.#open();
    const now = Math.floor(systemClock.now());
    const first = ((db.prepare('SELECT max(seq) AS seq FROM jobs').get() as { seq: number | null }).seq ?? 0) + 1;
    for (let done = 0; done < count; done += FILL_PART) {
      const numbers = `WITH RECURSIVE s (seq) AS (SELECT ${first + done} UNION ALL
        SELECT seq + 1 FROM s WHERE seq < ${first + Math.min(count, done + FILL_PART) - 1})`;
      db.exec(`
        BEGIN IMMEDIATE;
        INSERT INTO jobs (seq, id, state, queue, lane, priority, due_at, runs, attempts, claimed_at, first_started_at,
          finished_at, available_at, enqueued_at, name, policy, payload)
        ${numbers} SELECT seq, printf('%08x-0000-7000-8000-%012x', seq / 65536, seq), 4, 1, 0, 5, ${now}, 1, 1, ${now},
          ${now}, ${now}, ${now}, ${now}, 1, 2, '{"n":-1,"kind":"noop","sentAt":0}' FROM s;
        INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, decision)
        ${numbers} SELECT seq, 1, 1, 'completed', 1, 3, ${now}, ${now}, '{"kind":"complete","rule":"completed"}' FROM s;
        COMMIT`);
    }
    return null;
  }

  async settleDown(): Promise<void> {
    this.#open().exec('ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)');
  }

  async holdSnapshot(): Promise<() => Promise<void>> {
    const db = new DatabaseSync(this.#path, { readOnly: true });
    db.exec('BEGIN');
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return async () => db.close();
  }

  async close(): Promise<void> {
    this.#db?.close();
    this.#db = undefined;
    this.#insert = undefined;
  }

  #add(payloads: readonly Payload[], priority: number): void {
    const db = this.#open();
    this.#insert ??= db.prepare(`
      INSERT INTO jobs (id, state, queue, lane, priority, due_at, available_at, enqueued_at, name, policy, payload)
      VALUES (?, 1, 1, 0, ?, ?, ?, ?, 1, 2, ?)`);
    db.exec('BEGIN IMMEDIATE');
    const now = Math.floor(systemClock.now());
    for (const payload of payloads) {
      this.#insert.run(systemClock.newId(), priority, now, now, now, JSON.stringify(payload));
    }
    db.exec('COMMIT');
  }

  #open(): DatabaseSync {
    if (this.#db) return this.#db;
    const db = new DatabaseSync(this.#path, { timeout: 60_000 });
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000');
    db.exec(TABLES);
    this.#db = db;
    return db;
  }
}
