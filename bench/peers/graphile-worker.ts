import { type AddJobsJobSpec, Logger, makeWorkerUtils, run, type WorkerUtils } from 'graphile-worker';
import type {
  Counts,
  Handler,
  Kind,
  OpenPeer,
  Payload,
  Peer,
  Running,
  Servers,
  WorkerOptions,
} from '../harness/peer.ts';
import { Database, noPostgres, OnPostgres } from './postgres.ts';
import { versionOf } from './versions.ts';

const TASK = 'bench';
const LOCAL_QUEUE = 500;
const MOST_ATTEMPTS = 32_767;

const maxAttempts: Readonly<Partial<Record<Kind, number | undefined>>> = {
  noop: undefined,
  once: 2,
  twice: 3,
  storm: MOST_ATTEMPTS,
  work: undefined,
  poison: undefined,
};

const silent = new Logger(() => () => {});

const common = {
  engine: 'postgres',
  lacks: [
    'finished jobs: a completed job is deleted, so there is no history at all',
    'a fence on completion: the row is deleted by its id alone',
    'shares between fresh jobs and retries',
  ],
  backoff: {
    smallest: 'fixed formula: e^attempt seconds, so 2.7 s and then 7.4 s',
    fifty: 'fixed formula: e^attempt seconds, so the storm calms down by itself',
  },
  crashSettings:
    'a locked job is free again after 4 h; there is no setting, but a call for who knows the ids of the dead (forceUnlockWorkers)',
  unavailable: async (servers: Servers) => noPostgres(servers),
} as const;

export const graphileWorker: Peer = {
  ...common,
  id: 'graphile-worker-default',
  mostRounds: 1,
  title: `Graphile Worker ${versionOf('graphile-worker')}`,
  settings: 'default but for the concurrency (concurrentJobs)',
  open: async (servers, space) => new OpenGraphile(new Database(servers, space), false),
};

export const graphileWorkerTuned: Peer = {
  ...common,
  id: 'graphile-worker-tuned',
  title: `Graphile Worker ${versionOf('graphile-worker')}, tuned`,
  settings: `as its performance page: localQueue ${LOCAL_QUEUE}, completeJobBatchDelay 0, failJobBatchDelay 0, a pool of concurrency + 1`,
  open: async (servers, space) => new OpenGraphile(new Database(servers, space), true),
};

class OpenGraphile extends OnPostgres implements OpenPeer {
  readonly #tuned: boolean;
  #utils: WorkerUtils | undefined;

  constructor(database: Database, tuned: boolean) {
    super(database);
    this.#tuned = tuned;
  }

  async reset(): Promise<void> {
    await this.disconnect();
    await this.database.recreate();
    await (await this.#start()).migrate();
  }

  async connect(): Promise<void> {}

  async enqueueOne(payload: Payload): Promise<void> {
    const utils = this.#utils ?? (await this.#start());
    const attempts = maxAttempts[payload.kind];
    await utils.addJob(TASK, payload, attempts === undefined ? {} : { maxAttempts: attempts });
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const jobs = payloads.map((payload): AddJobsJobSpec => {
      const attempts = maxAttempts[payload.kind];
      return { identifier: TASK, payload, ...(attempts === undefined ? {} : { maxAttempts: attempts }) };
    });
    await (await this.#start()).addJobs(jobs);
  }

  async startWorker(handler: Handler, { concurrency }: WorkerOptions): Promise<Running> {
    const runner = await run({
      preset: {
        worker: {
          connectionString: this.database.url,
          concurrentJobs: concurrency,
          logger: silent,
          ...(this.#tuned
            ? {
                maxPoolSize: concurrency + 1,
                localQueue: { size: LOCAL_QUEUE },
                completeJobBatchDelay: 0,
                failJobBatchDelay: 0,
              }
            : {}),
        },
      },
      noHandleSignals: true,
      taskList: { [TASK]: (payload) => handler(payload as Payload) },
    });
    return { stop: () => runner.stop() };
  }

  async counts(): Promise<Counts> {
    const [row] = await this.database.query<{ waiting: number; running: number; dead: number }>(
      `SELECT count(*) FILTER (WHERE locked_at IS NULL AND attempts < max_attempts)::int AS waiting,
              count(*) FILTER (WHERE locked_at IS NOT NULL)::int AS running,
              count(*) FILTER (WHERE locked_at IS NULL AND attempts >= max_attempts)::int AS dead
       FROM graphile_worker._private_jobs`,
    );
    return row ?? { waiting: 0, running: 0, dead: 0 };
  }

  async fillWaiting(count: number): Promise<void> {
    await this.database.query(
      `INSERT INTO graphile_worker._private_tasks (identifier) VALUES ($1) ON CONFLICT DO NOTHING`,
      [TASK],
    );
    await this.database.query(
      `INSERT INTO graphile_worker._private_jobs (task_id, payload, priority)
       SELECT id, '{"n":-1,"kind":"noop","sentAt":0}', 9
       FROM graphile_worker._private_tasks, generate_series(1, $2) WHERE identifier = $1`,
      [TASK, count],
    );
  }

  async fillFinished(): Promise<string | null> {
    return 'it keeps no finished jobs';
  }

  async #start(): Promise<WorkerUtils> {
    this.#utils ??= await makeWorkerUtils({ connectionString: this.database.url, logger: silent });
    return this.#utils;
  }

  protected async disconnect(): Promise<void> {
    const utils = this.#utils;
    this.#utils = undefined;
    await utils?.release();
  }
}
