import { createPostgresBackend, type JobsOptions, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { chunks, sleep } from '../harness/measure.ts';
import type {
  Counts,
  Guard,
  Handler,
  Kind,
  OpenPeer,
  Payload,
  Peer,
  Running,
  Server,
  WorkerOptions,
} from '../harness/peer.ts';
import { Database, noPostgres } from './postgres.ts';
import { versionOf } from './versions.ts';

const QUEUE = 'bench';
const CRASH_MS = 5_000;
const BACKLOG_PART = 5_000;

const options: Readonly<Partial<Record<Kind, JobsOptions>>> = {
  noop: {},
  once: { attempts: 2 },
  twice: { attempts: 3 },
  storm: { attempts: 1_000_000, backoff: { type: 'fixed', delay: 50 } },
  work: {},
  poison: {},
};

const version = versionOf('bullmq');

const common = {
  lacks: [
    'a history of runs: a job keeps the stack traces of its failures, but not when runs started, ended and what followed',
    'an attempt counted at claim: a crash does not count against the attempts, but as a stall with a cap of its own (1)',
    'shares between fresh jobs and retries',
    'limits per key: its global concurrency is one limit for the whole queue (groups are part of BullMQ Pro, which is sold)',
  ],
  limits: { perKey: false, strict: true },
  backoff: { smallest: 'none', fifty: '50 ms' },
  crashSettings: `lockDuration and stalledInterval ${CRASH_MS / 1_000} s (default 30 s)`,
} as const;

function redisPeer(id: string, title: string, settings: string, lacks: readonly string[], server: ServerName): Peer {
  return {
    ...common,
    id,
    title: `BullMQ ${version}, ${title}`,
    engine: 'redis',
    settings,
    lacks: [...common.lacks, ...lacks],
    unavailable: async (servers) => ('reason' in servers[server] ? servers[server].reason : null),
    open: async (servers, space, guard) => new OpenBull(new RedisPlace(servers[server], space), guard),
  };
}

type ServerName = 'redisEverySecond' | 'redisAlways';

export const bullmqRedisEverySecond: Peer = redisPeer(
  'bullmq-redis-everysec',
  'Redis',
  'default; Redis with appendonly=yes, appendfsync=everysec, as its guide to production advises',
  ['full durability: a power cut may lose the last second'],
  'redisEverySecond',
);

export const bullmqRedisAlways: Peer = redisPeer(
  'bullmq-redis-always',
  'Redis, fsync always',
  'default; Redis with appendonly=yes, appendfsync=always, the durability that all others here have',
  [],
  'redisAlways',
);

export const bullmqPostgres: Peer = {
  ...common,
  id: 'bullmq-postgres',
  mostRounds: 1,
  title: `BullMQ ${version}, PostgreSQL`,
  engine: 'postgres',
  settings: 'default, with createPostgresBackend',
  unavailable: async (servers) => noPostgres(servers),
  open: async (servers, space, guard) => new OpenBull(new PostgresPlace(new Database(servers, space)), guard),
};

/** What differs between its backends. */
interface Place {
  queue(): Queue;
  worker(run: (job: { data: Payload }) => Promise<void>, options: object): Worker;
  erase(): Promise<void>;
  fillWaiting(count: number): Promise<boolean>;
  fillFinished(count: number): Promise<string | null>;
  settleDown(filled?: boolean): Promise<void>;
  holdSnapshot(): Promise<(() => Promise<void>) | null>;
  close(): Promise<void>;
}

class OpenBull implements OpenPeer {
  readonly #place: Place;
  /** The global concurrency of the queue. */
  readonly #atOnce: number | null;
  #queue: Queue | undefined;

  constructor(place: Place, guard: Guard | undefined) {
    this.#place = place;
    this.#atOnce = typeof guard === 'object' ? guard.concurrency : null;
  }

  async reset(): Promise<void> {
    await this.#queue?.close();
    this.#queue = undefined;
    await this.#place.erase();
    await this.connect();
    if (this.#atOnce !== null) await this.#open().setGlobalConcurrency(this.#atOnce);
  }

  async connect(): Promise<void> {
    await this.#open().waitUntilReady();
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#open().add(payload.kind, payload, options[payload.kind]);
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#open().addBulk(payloads.map((data) => ({ name: data.kind, data, opts: options[data.kind] ?? {} })));
  }

  async startWorker(handler: Handler, { concurrency, crashSoon }: WorkerOptions): Promise<Running> {
    const run = async ({ data }: { data: Payload }): Promise<void> => handler(data);
    const soon = crashSoon ? { lockDuration: CRASH_MS, stalledInterval: CRASH_MS } : {};
    const worker = this.#place.worker(run, { concurrency, ...soon });
    worker.on('error', () => {});
    await worker.waitUntilReady();
    return { stop: () => worker.close() };
  }

  async counts(): Promise<Counts> {
    const counts = await this.#open().getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed');
    const of = (...states: string[]): number => states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
    const waiting = of('wait', 'waiting', 'prioritized', 'delayed');
    return { waiting, running: of('active'), dead: of('failed') };
  }

  async fillWaiting(count: number): Promise<void> {
    if (await this.#place.fillWaiting(count)) return;
    const data: Payload = { n: -1, kind: 'noop', sentAt: 0 };
    const all = Array.from({ length: count }, () => ({ name: 'noop', data, opts: { priority: 9 } }));
    for (const part of chunks(all, BACKLOG_PART)) await this.#open().addBulk(part);
  }

  fillFinished(count: number): Promise<string | null> {
    return this.#place.fillFinished(count);
  }

  settleDown(filled?: boolean): Promise<void> {
    return this.#place.settleDown(filled);
  }

  holdSnapshot(): Promise<(() => Promise<void>) | null> {
    return this.#place.holdSnapshot();
  }

  async close(): Promise<void> {
    await this.#queue?.close();
    await this.#place.close();
  }

  async erase(): Promise<void> {
    await this.#place.erase();
  }

  #open(): Queue {
    if (this.#queue) return this.#queue;
    this.#queue = this.#place.queue();
    this.#queue.on('error', () => {});
    return this.#queue;
  }
}

/** Redis numbers its databases. */
const spaces = ['_main', '_empty', '_waiting', '_finished'];

class RedisPlace implements Place {
  readonly #url: string;

  constructor(server: Server, space: string) {
    if ('reason' in server) throw new Error(server.reason);
    const database = spaces.findIndex((end) => space.endsWith(end));
    this.#url = `${server.url}/${database}`;
  }

  queue(): Queue {
    return new Queue(QUEUE, { connection: { url: this.#url } });
  }

  worker(run: (job: { data: Payload }) => Promise<void>, options: object): Worker {
    return new Worker(QUEUE, run, { connection: { url: this.#url }, ...options });
  }

  async erase(): Promise<void> {
    const redis = new Redis(this.#url);
    await redis.flushdb('SYNC');
    redis.disconnect();
  }

  async fillWaiting(): Promise<boolean> {
    return false;
  }

  async fillFinished(): Promise<string | null> {
    return 'Redis would hold them in memory, some 500 bytes each';
  }

  /** A fill makes Redis rewrite its log in the background; a drain begins when that is over. */
  async settleDown(): Promise<void> {
    const redis = new Redis(this.#url);
    while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info('persistence'))) await sleep(50);
    redis.disconnect();
  }

  async holdSnapshot(): Promise<null> {
    return null;
  }

  async close(): Promise<void> {}
}

class PostgresPlace implements Place {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  queue(): Queue {
    return new Queue(QUEUE, this.#connection(), createPostgresBackend) as unknown as Queue;
  }

  worker(run: (job: { data: Payload }) => Promise<void>, options: object): Worker {
    return new Worker(QUEUE, run, { ...this.#connection(), ...options }, createPostgresBackend) as unknown as Worker;
  }

  erase(): Promise<void> {
    return this.#database.recreate();
  }

  async fillWaiting(count: number): Promise<boolean> {
    await this.#database.query(
      `INSERT INTO bullmq.job (queue, id, seq, name, state, data, opts, priority, added_at_ms)
       SELECT $1, 'waiting-' || n, 1000000000 + n, 'noop', 'waiting', '{"n":-1,"kind":"noop","sentAt":0}',
         '{"attempts":1,"priority":9}', 9, extract(epoch FROM now()) * 1000
       FROM generate_series(1, $2) AS n`,
      [QUEUE, count],
    );
    return true;
  }

  async fillFinished(count: number): Promise<string | null> {
    await this.#database.query(
      `INSERT INTO bullmq.job (queue, id, seq, name, state, data, opts, attempts_made, attempts_started, return_value,
         added_at_ms, processed_at_ms, finished_at_ms)
       SELECT $1, 'finished-' || n, -1000000000 - n, 'noop', 'completed', '{"n":-1,"kind":"noop","sentAt":0}',
         '{"attempts":1}', 1, 1, 'null', now_ms, now_ms, now_ms
       FROM generate_series(1, $2) AS n, (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms) AS clock`,
      [QUEUE, count],
    );
    return null;
  }

  settleDown(filled?: boolean): Promise<void> {
    return this.#database.settleDown(filled);
  }

  holdSnapshot(): Promise<() => Promise<void>> {
    return this.#database.holdSnapshot();
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  #connection(): { connection: { connectionString: string; migrate: boolean } } {
    return { connection: { connectionString: this.#database.url, migrate: true } };
  }
}
