import { type JobInsert, type JobResult, PgBoss, type Queue, type WorkOptions } from 'pg-boss';
import { limitKey } from '../harness/limits.ts';
import { inFlight } from '../harness/measure.ts';
import type {
  Counts,
  Guard,
  Handler,
  Kind,
  LimitGuard,
  OpenPeer,
  Payload,
  Peer,
  Running,
  Servers,
  WorkerOptions,
} from '../harness/peer.ts';
import { Database, noPostgres, OnPostgres } from './postgres.ts';
import { versionOf } from './versions.ts';

const QUEUE = 'bench';
/** Found by trying 1 to 8 fetchers of 50 to 1,000: this drains fastest. */
const FETCHERS = 4;
const BATCH = 100;
const HEARTBEAT_SECONDS = 10;

/** The smallest delay is none; between none and 50 ms there is nothing, the next is a whole second. */
const retry: Readonly<Partial<Record<Kind, Pick<JobInsert, 'retryLimit' | 'retryDelay'>>>> = {
  noop: {},
  once: { retryLimit: 1, retryDelay: 0 },
  twice: { retryLimit: 2, retryDelay: 0 },
  storm: { retryLimit: 1_000_000, retryDelay: 1 },
  work: {},
  poison: {},
};

const common = {
  engine: 'postgres',
  lacks: [
    'a history of runs: a job keeps the output or error of its last run only',
    'decisions per failure: the delay is computed in SQL from the job alone',
    'shares between fresh jobs and retries',
    'limits that hold while several fetch at once: a fetch counts the running jobs of a group, but does not lock the count',
  ],
  limits: { perKey: true, strict: false },
  backoff: { smallest: 'none', fifty: '1 s (whole seconds; the next shorter one is none)' },
  unavailable: async (servers: Servers) => noPostgres(servers),
} as const;

export const pgBoss: Peer = {
  ...common,
  id: 'pg-boss-default',
  mostRounds: 1,
  title: `pg-boss ${versionOf('pg-boss')}`,
  settings: 'default but for the concurrency (localConcurrency): each worker polls every 2 s for one job',
  crashSettings: 'default: a run may take 15 min before it counts as lost',
  open: async (servers, space, guard) => new OpenPgBoss(new Database(servers, space), false, guard),
};

export const pgBossTuned: Peer = {
  ...common,
  id: 'pg-boss-tuned',
  title: `pg-boss ${versionOf('pg-boss')}, tuned`,
  settings:
    `${FETCHERS} fetchers of ${BATCH} (localConcurrency, batchSize), perJobResults, burstWhenBatchFull, ` +
    'LISTEN/NOTIFY, polling every 0.5 s',
  crashSettings: `heartbeatSeconds ${HEARTBEAT_SECONDS} (its minimum; off by default), looked after every second`,
  open: async (servers, space, guard) => new OpenPgBoss(new Database(servers, space), true, guard),
};

class OpenPgBoss extends OnPostgres implements OpenPeer {
  readonly #tuned: boolean;
  readonly #limit: LimitGuard | undefined;
  #boss: PgBoss | undefined;

  constructor(database: Database, tuned: boolean, guard: Guard | undefined) {
    super(database);
    this.#tuned = tuned;
    this.#limit = typeof guard === 'object' ? guard : undefined;
  }

  async reset(crashSoon = false): Promise<void> {
    await this.disconnect();
    await this.database.recreate();
    await this.#start(crashSoon);
  }

  async connect(): Promise<void> {
    await this.#start();
  }

  async enqueueOne(payload: Payload): Promise<void> {
    const boss = this.#boss ?? (await this.#start());
    await boss.send(QUEUE, payload, this.#optionsOf(payload));
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const boss = await this.#start();
    await boss.insert(
      QUEUE,
      payloads.map((payload) => ({ data: payload, ...this.#optionsOf(payload) })),
    );
  }

  async startWorker(handler: Handler, { concurrency, crashSoon }: WorkerOptions): Promise<Running> {
    if (crashSoon && this.#tuned) await this.disconnect();
    const boss = await this.#start(crashSoon);
    if (this.#tuned) await this.#workInBatches(boss, handler, concurrency);
    else {
      await boss.work<Payload>(QUEUE, { localConcurrency: concurrency, ...this.#groups() }, async ([job]) => {
        if (job) await handler(job.data);
      });
    }
    return { stop: () => this.disconnect() };
  }

  async counts(): Promise<Counts> {
    const [row] = await this.database.query<{ waiting: number; running: number; dead: number }>(
      `SELECT count(*) FILTER (WHERE state IN ('created', 'retry'))::int AS waiting,
              count(*) FILTER (WHERE state = 'active')::int AS running,
              count(*) FILTER (WHERE state = 'failed')::int AS dead
       FROM pgboss.job WHERE name = $1`,
      [QUEUE],
    );
    return row ?? { waiting: 0, running: 0, dead: 0 };
  }

  async fillWaiting(count: number): Promise<void> {
    await this.database.query(
      `INSERT INTO pgboss.job (name, priority, data)
       SELECT $1, -1, '{"n":-1,"kind":"noop","sentAt":0}' FROM generate_series(1, $2)`,
      [QUEUE, count],
    );
  }

  async fillFinished(count: number): Promise<string | null> {
    await this.database.query(
      `INSERT INTO pgboss.job (name, data, state, started_on, completed_on)
       SELECT $1, '{"n":-1,"kind":"noop","sentAt":0}', 'completed', now(), now() FROM generate_series(1, $2)`,
      [QUEUE, count],
    );
    return null;
  }

  async #workInBatches(boss: PgBoss, handler: Handler, concurrency: number): Promise<void> {
    // A fetcher asks again when all of its batch has ended, so more places need more of them.
    const fetchers = Math.max(FETCHERS, Math.ceil(concurrency / BATCH));
    const options = {
      localConcurrency: fetchers,
      batchSize: BATCH,
      perJobResults: true,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
      ...this.#groups(),
    } as const satisfies WorkOptions;
    await boss.work<Payload, unknown, typeof options>(QUEUE, options, async (jobs) => {
      const results: JobResult[] = [];
      await inFlight(jobs.length, concurrency / fetchers, Number.POSITIVE_INFINITY, async (n) => {
        const job = jobs[n];
        if (!job) return;
        try {
          const running = handler(job.data);
          if (running) await running;
          results.push({ id: job.id, status: 'completed' });
        } catch (error) {
          results.push({ id: job.id, status: 'failed', output: { message: (error as Error).message } });
        }
      });
      return results;
    });
  }

  #optionsOf({ n, kind }: Payload): Omit<JobInsert, 'data'> {
    return { ...retry[kind], ...(this.#limit !== undefined && { group: { id: limitKey(n, this.#limit) || 'all' } }) };
  }

  #groups(): Pick<WorkOptions, 'groupConcurrency'> {
    return this.#limit === undefined ? {} : { groupConcurrency: this.#limit.concurrency };
  }

  async #start(crashSoon = false): Promise<PgBoss> {
    if (this.#boss) return this.#boss;
    const soon = { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 };
    const boss = new PgBoss({
      connectionString: this.database.url,
      ...(this.#tuned ? { useListenNotify: true } : {}),
      ...(crashSoon && this.#tuned ? soon : {}),
    });
    boss.on('error', () => {});
    await boss.start();
    const queue: Omit<Queue, 'name'> = this.#tuned ? { notify: true } : {};
    if (this.#tuned && crashSoon) queue.heartbeatSeconds = HEARTBEAT_SECONDS;
    if ((await boss.getQueue(QUEUE)) === null) await boss.createQueue(QUEUE, queue);
    this.#boss = boss;
    return boss;
  }

  protected async disconnect(): Promise<void> {
    const boss = this.#boss;
    this.#boss = undefined;
    await boss?.stop({ graceful: true, close: true, timeout: 20_000 });
  }
}
