import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { systemClock } from '../../dist/clock.js';
import { sleep } from '../harness/measure.ts';
import type { Counts, Handler, OpenPeer, Payload, Peer, Running, WorkerOptions } from '../harness/peer.ts';
import { Database, noPostgres, OnPostgres } from './postgres.ts';
import { versionOf } from './versions.ts';

/*
 * The limit to measure against on PostgreSQL: hand-written statements on `pg`, in batches, and nothing around them.
 * `update` keeps the rows and a ledger, as a queue with history has to; `delete` throws finished rows away.
 */
const BATCH = 500;
const IDLE_MS = 20;
const LEASE_SECONDS = 30;
/** Statistics of a table that is full now and empty in a second mislead the planner: each row is found by its index. */
const BY_INDEX = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off';

type Style = 'update' | 'delete';

const skips = {
  W4: 'it polls on a timer, so its pickup time is whatever that timer says',
  W5: 'it knows one order, by due time',
  W7: 'it has nothing that notices a crash',
};

export const rawPostgresUpdate: Peer = peer('update', {
  id: 'raw-postgres-update',
  title: `raw SQL on pg ${versionOf('pg')}, rows and ledger kept`,
  lacks: [
    'lanes, policies, keys, cancelling, heartbeats, rescue of crashed runs, events, metrics: it is the limit, not a queue',
  ],
});

export const rawPostgresDelete: Peer = peer('delete', {
  id: 'raw-postgres-delete',
  title: `raw SQL on pg ${versionOf('pg')}, finished rows deleted`,
  lacks: ['everything the other raw one lacks, and any trace of a finished job'],
});

function peer(style: Style, about: Pick<Peer, 'id' | 'title' | 'lacks'>): Peer {
  return {
    ...about,
    engine: 'postgres',
    settings: `claims and settles ${BATCH} at a time`,
    backoff: { smallest: 'none', fifty: '50 ms' },
    crashSettings: '-',
    skips,
    unavailable: async (servers) => noPostgres(servers),
    open: async (servers, space) => new RawPostgres(style, new Database(servers, space)),
  };
}

interface Claimed {
  readonly id: string;
  readonly runs: number;
  readonly attempts: number;
  readonly payload: Payload;
}

class RawPostgres extends OnPostgres implements OpenPeer {
  readonly #style: Style;
  readonly #worker = randomUUID();
  #pool: pg.Pool | undefined;

  constructor(style: Style, database: Database) {
    super(database);
    this.#style = style;
  }

  async reset(): Promise<void> {
    await this.disconnect();
    await this.database.recreate();
    await this.database.query(`
      CREATE TABLE jobs (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id uuid NOT NULL,
        state smallint NOT NULL DEFAULT 1, -- 1 waiting, 3 running, 4 completed
        priority smallint NOT NULL DEFAULT 5,
        due_at timestamptz NOT NULL DEFAULT now(),
        runs int NOT NULL DEFAULT 0,
        attempts int NOT NULL DEFAULT 0,
        worker uuid,
        claimed_at timestamptz,
        lease_ends_at timestamptz,
        finished_at timestamptz,
        enqueued_at timestamptz NOT NULL DEFAULT now(),
        payload jsonb NOT NULL
      );
      CREATE UNIQUE INDEX jobs_id ON jobs (id);
      CREATE INDEX jobs_waiting ON jobs (priority, due_at, seq) WHERE state = 1;
      CREATE INDEX jobs_running ON jobs (lease_ends_at) WHERE state = 3;
      CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state = 4;
      CREATE TABLE runs (
        job bigint NOT NULL,
        run int NOT NULL,
        attempt int NOT NULL,
        outcome text NOT NULL,
        worker uuid NOT NULL,
        started_at timestamptz NOT NULL,
        ended_at timestamptz NOT NULL,
        error text,
        PRIMARY KEY (job, run)
      );`);
  }

  async connect(): Promise<void> {
    await this.#client().query('SELECT');
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#client().query({
      name: 'enqueue-one',
      text: 'INSERT INTO jobs (id, payload) VALUES ($1, $2)',
      values: [systemClock.newId(), JSON.stringify(payload)],
    });
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#client().query({
      name: 'enqueue-bulk',
      text: 'INSERT INTO jobs (id, payload) SELECT * FROM unnest($1::uuid[], $2::jsonb[])',
      values: [payloads.map(() => systemClock.newId()), payloads.map((payload) => JSON.stringify(payload))],
    });
  }

  /** Two loops, so that the server has something to do while this process runs handlers. */
  async startWorker(handler: Handler, _options: WorkerOptions): Promise<Running> {
    let stopping = false;
    const loop = async (): Promise<void> => {
      while (!stopping) {
        const jobs = await this.#claim();
        if (jobs.length === 0) {
          await sleep(IDLE_MS);
          continue;
        }
        const done: Claimed[] = [];
        const failed: Claimed[] = [];
        for (const job of jobs) {
          try {
            const running = handler(job.payload);
            if (running) await running;
            done.push(job);
          } catch {
            failed.push(job);
          }
        }
        if (done.length > 0) await this.#complete(done);
        if (failed.length > 0) await this.#retry(failed);
      }
    };
    const loops = Promise.all([loop(), loop()]);
    return {
      stop: async () => {
        stopping = true;
        await loops;
      },
    };
  }

  async counts(): Promise<Counts> {
    const [row] = await this.database.query<{ waiting: number; running: number }>(
      `SELECT (SELECT count(*) FROM jobs WHERE state = 1)::int AS waiting,
              (SELECT count(*) FROM jobs WHERE state = 3)::int AS running`,
    );
    return { waiting: row?.waiting ?? 0, running: row?.running ?? 0, dead: 0 };
  }

  async fillWaiting(count: number): Promise<void> {
    await this.database.query(
      `INSERT INTO jobs (id, priority, payload)
       SELECT uuidv7(), 9, '{"n":-1,"kind":"noop","sentAt":0}' FROM generate_series(1, $1)`,
      [count],
    );
  }

  async fillFinished(count: number): Promise<string | null> {
    if (this.#style === 'delete') return 'it keeps no finished jobs';
    await this.database.query(
      `WITH filled AS (
         INSERT INTO jobs (id, state, runs, attempts, claimed_at, finished_at, payload)
         SELECT uuidv7(), 4, 1, 1, now(), now(), '{"n":-1,"kind":"noop","sentAt":0}' FROM generate_series(1, $1)
         RETURNING seq
       )
       INSERT INTO runs SELECT seq, 1, 1, 'completed', $2, now(), now(), NULL FROM filled`,
      [count, this.#worker],
    );
    return null;
  }

  async #claim(): Promise<Claimed[]> {
    const { rows } = await this.#client().query<Claimed>({
      name: 'claim',
      text: `
        UPDATE jobs SET state = 3, runs = runs + 1, attempts = attempts + 1, worker = $1, claimed_at = now(),
          lease_ends_at = now() + interval '${LEASE_SECONDS} s'
        WHERE seq = ANY (ARRAY(
          SELECT seq FROM jobs WHERE state = 1 AND due_at <= now()
          ORDER BY priority, due_at, seq LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
        ))
        RETURNING seq AS id, runs, attempts, payload`,
      values: [this.#worker],
    });
    return rows;
  }

  async #complete(jobs: readonly Claimed[]): Promise<void> {
    const values = [jobs.map(({ id }) => id), jobs.map(({ runs }) => runs), this.#worker];
    const text =
      this.#style === 'delete'
        ? `DELETE FROM jobs USING unnest($1::bigint[], $2::int[]) AS ended (job, run)
           WHERE seq = job AND runs = run AND worker = $3`
        : `WITH ended AS (
             UPDATE jobs SET state = 4, finished_at = now(), worker = NULL, lease_ends_at = NULL
             FROM unnest($1::bigint[], $2::int[]) AS ended (job, run)
             WHERE seq = job AND runs = run AND worker = $3
             RETURNING seq, runs, attempts, claimed_at
           )
           INSERT INTO runs SELECT seq, runs, attempts, 'completed', $3, claimed_at, now(), NULL FROM ended`;
    await this.#client().query({ name: 'complete', text, values });
  }

  async #retry(jobs: readonly Claimed[]): Promise<void> {
    const update = `
      UPDATE jobs SET state = 1, due_at = now(), worker = NULL, lease_ends_at = NULL
      FROM unnest($1::bigint[], $2::int[]) AS ended (job, run)
      WHERE seq = job AND runs = run AND worker = $3`;
    const text =
      this.#style === 'delete'
        ? update
        : `WITH ended AS (${update} RETURNING seq, runs, attempts, claimed_at)
           INSERT INTO runs SELECT seq, runs, attempts, 'failed', $3, claimed_at, now(), 'fails on purpose' FROM ended`;
    await this.#client().query({
      name: 'retry',
      text,
      values: [jobs.map(({ id }) => id), jobs.map(({ runs }) => runs), this.#worker],
    });
  }

  #client(): pg.Pool {
    this.#pool ??= new pg.Pool({ connectionString: this.database.url, options: BY_INDEX, max: 10 }).on(
      'error',
      () => {},
    );
    return this.#pool;
  }

  protected async disconnect(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.end();
  }
}
