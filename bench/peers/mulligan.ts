import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../dist/clock.js';
import { type AnyJobDefinition, defineJob, type JobOptions, Mulligan, type RetryOptions } from '../../dist/index.js';
import type { ClaimedJob, NewJob, QueueQuota, Store } from '../../dist/store/index.js';
import { openStore } from '../../dist/store/open.js';
import { limitKey } from '../harness/limits.ts';
import { inFlight, wall } from '../harness/measure.ts';
import type {
  Counts,
  Gated,
  GatedKind,
  Grouped,
  Guard,
  Handler,
  Kind,
  Limited,
  OpenPeer,
  Partitioned,
  Payload,
  Peer,
  Running,
  Servers,
  Usage,
  WorkerOptions,
} from '../harness/peer.ts';
import { fillPostgres } from './postgres-fill.ts';
import { fillSqlite } from './sqlite-fill.ts';
import { mulliganVersion } from './versions.ts';

const CRASH_LEASE = '5s';
const BACKLOG_PART = 50_000;
const CLAIM_LEASE_MS = 30_000;
/** These jobs are never settled, and none of them may expire before the last one is claimed. */
export const KEPT_LEASE_MS = 60 * 60_000;
const FILL_PART = 1_000;
const CALLS_IN_FLIGHT = 64;
/** The resource of jobs `down`. */
export const SHUT = 'shut';

const retry: Readonly<Record<Kind, RetryOptions | undefined>> = {
  noop: undefined,
  once: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
  twice: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1ms' }, jitter: 'none' },
  storm: { maxAttempts: 1_000_000, backoff: { kind: 'fixed', base: '50ms' }, jitter: 'none' },
  work: undefined,
  poison: undefined,
  call: undefined,
  down: undefined,
  flaky: { backoff: { kind: 'fixed', base: '1ms' }, jitter: 'none' },
};

type ResourceFunction = (payload: Payload) => [parent: string, key: string];

/** Of kinds that stand behind gates whatever guard is asked for. */
const resources: Readonly<Record<GatedKind, string | ResourceFunction>> = {
  call: 'other',
  down: SHUT,
  // As a stranger would choose them: each another one, and some longer than what is stored.
  flaky: ({ n }) => ['flood', `' OR 1=1 --/${n}/${'k'.repeat(n % 400)}`],
};

const kinds: readonly Kind[] = ['noop', 'once', 'twice', 'storm', 'work', 'poison'];
const gatedKinds: readonly GatedKind[] = ['call', 'down', 'flaky'];

function resourceFor(kind: Kind, guard: Guard | undefined): Pick<JobOptions<Payload>, 'resource'> {
  const own = (resources as Partial<Record<Kind, string | ResourceFunction>>)[kind];
  if (own !== undefined) return { resource: own };
  if (guard === 'gate') return { resource: 'bench' };
  return guard === 'none' ? { resource: false } : {};
}

/** The limit that all jobs share. */
export const LIMIT = 'bench';

function limitFor(guard: Guard | undefined): Pick<JobOptions<Payload>, 'limit'> {
  if (typeof guard !== 'object') return {};
  const { keys, concurrency } = guard;
  const key = ({ n }: Payload): string => limitKey(n, guard);
  return { limit: { name: LIMIT, concurrency, ...(keys !== null && { key }) } };
}

const common = {
  lacks: [],
  limits: { perKey: true, strict: true },
  backoff: { smallest: '1 ms', fifty: '50 ms' },
  crashSettings: `lease ${CRASH_LEASE} (default 30 s)`,
} as const;

/** What differs between its stores. */
export interface Place {
  readonly url: string;
  /** Each store that is opened is another one. */
  readonly isInProcess?: boolean;
  erase(): Promise<void>;
  fillFinished(count: number): Promise<string | null>;
  settleDown(filled?: boolean): Promise<void>;
  holdSnapshot(): Promise<(() => Promise<void>) | null>;
  usage?(): Promise<Usage>;
  watchLocks?(): Promise<() => Promise<number>>;
  /** Rows of these tables, those left out that the store does not have. */
  rows(tables: readonly string[]): Promise<Readonly<Record<string, number>>>;
  /** What connections do that are made from now on: filling need not wait for the disk at each commit. */
  syncCommits?(when: 'always' | 'never'): Promise<void>;
  close(): Promise<void>;
}

export const mulliganMemory: Peer = {
  ...common,
  id: 'mulligan-memory',
  title: `Mulligan ${mulliganVersion()}, memory`,
  engine: 'memory',
  settings: 'default; nothing is durable',
  lacks: ['durability: it is gone with its process'],
  inProcess: true,
  skips: {
    W6: 'memory, for tests: it has no tables to grow',
    W7: 'it does not outlive its process',
  },
  unavailable: async () => null,
  open: async (_servers, _space, guard) => OpenMulligan.open(memoryPlace(), guard),
};

export const mulliganSqlite: Peer = {
  ...common,
  id: 'mulligan-sqlite',
  title: `Mulligan ${mulliganVersion()}, SQLite`,
  engine: 'sqlite',
  settings: 'default: WAL, synchronous=FULL',
  unavailable: async () => null,
  open: async (servers, space, guard) => OpenMulligan.open(sqlitePlace(servers, space), guard),
};

export const mulliganPostgres: Peer = {
  ...common,
  id: 'mulligan-postgres',
  title: `Mulligan ${mulliganVersion()}, PostgreSQL`,
  engine: 'postgres',
  settings: 'default',
  async unavailable(servers) {
    if ('reason' in servers.postgres) return servers.postgres.reason;
    const place = await postgresPlace(servers, 'bench_probe');
    try {
      await place.erase();
      await (await Mulligan.open(place.url)).close();
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      await place.close();
    }
  },
  open: async (servers, space, guard) => OpenMulligan.open(await postgresPlace(servers, space), guard),
};

class OpenMulligan implements OpenPeer {
  readonly #place: Place;
  #mulligan: Mulligan | undefined;
  #store: Store | undefined;
  #handler: Handler = () => {};
  readonly #guard: Guard | undefined;
  readonly #definitions: ReadonlyMap<Kind, AnyJobDefinition>;

  private constructor(place: Place, guard: Guard | undefined) {
    this.#place = place;
    this.#guard = guard;
    const define = (kind: Kind): AnyJobDefinition => {
      const policy = retry[kind];
      const run = (payload: Payload): void | Promise<void> => this.#handler(payload);
      const retrying = policy === undefined ? {} : { retry: policy };
      return defineJob<Payload>({ name: kind, run, ...retrying, ...resourceFor(kind, guard), ...limitFor(guard) });
    };
    // Versions without gates, which `--against` may measure, know no resources.
    const defined = guard === undefined ? kinds : [...kinds, ...gatedKinds];
    this.#definitions = new Map(defined.map((kind) => [kind, define(kind)]));
  }

  static open(place: Place, guard: Guard | undefined): OpenMulligan {
    return new OpenMulligan(place, guard);
  }

  async reset(): Promise<void> {
    await this.#mulligan?.close();
    this.#mulligan = undefined;
    await this.#place.erase();
    await this.#queue();
  }

  async connect(): Promise<void> {
    await this.#queue();
  }

  async enqueueOne(payload: Payload): Promise<void> {
    const mulligan = this.#mulligan ?? (await this.#queue());
    await mulligan.enqueue(this.#definition(payload.kind), payload);
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const kind = payloads[0]?.kind ?? 'noop';
    const mulligan = await this.#queue();
    await mulligan.enqueueMany(this.#definition(kind), toEnqueue(mulligan, payloads));
  }

  async startWorker(handler: Handler, { concurrency, crashSoon }: WorkerOptions): Promise<Running> {
    this.#handler = handler;
    const worker = (await this.#queue()).work({ concurrency, ...(crashSoon ? { lease: CRASH_LEASE } : {}) });
    return { stop: async () => void (await worker.stop()) };
  }

  async counts(): Promise<Counts> {
    const { states } = await (await this.#queue()).stats();
    const waiting = states.ready + states.scheduled + states.retrying;
    return { waiting, running: states.running, dead: states.dead };
  }

  async fillWaiting(count: number): Promise<void> {
    const mulligan = await this.#queue();
    for (let done = 0; done < count; done += BACKLOG_PART) {
      const length = Math.min(BACKLOG_PART, count - done);
      const payloads = Array.from({ length }, (): Payload => ({ n: -1, kind: 'noop', sentAt: 0 }));
      await mulligan.enqueueMany(this.#definition('noop'), toEnqueue(mulligan, payloads), { priority: 9 });
    }
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

  async timeClaim(count: number): Promise<number> {
    const store = await this.#openStore();
    const worker = 'bench-claims';
    const startedAt = wall();
    const { jobs, now } = await store.claim({ worker, leaseMs: CLAIM_LEASE_MS, limit: count, queues: [quota(count)] });
    const tookMs = wall() - startedAt;
    const ids = new Set(jobs.map(({ id }) => id));
    if (ids.size !== count)
      throw new Error(`wrong: a claim of ${count} got ${jobs.length}, ${ids.size} different ones`);
    await completeAll(store, worker, { jobs, now });
    await this.fillWaiting(count);
    return tookMs;
  }

  async secondAttempts(kind: Kind): Promise<number[]> {
    const store = await this.#openStore();
    const late: number[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.list({ name: kind, limit: FILL_PART, ...(after !== undefined && { after }) });
      for (const { id } of page) {
        const [first, second] = await store.runs(id);
        if (second !== undefined) late.push(second.startedAt - (first?.nextDueAt ?? Number.NaN));
      }
      after = page.at(-1)?.id;
      if (page.length < FILL_PART) return late;
    }
  }

  get partitions(): Partitioned {
    return {
      fill: (jobs, partitions, held) => this.#fillPartitions({ jobs, partitions, held }),
      claim: async (limit) => claimUnheld(await this.#openStore(), limit),
    };
  }

  /** Loaded when it is needed: versions without gates have none of it. */
  async gates(): Promise<Gated> {
    const { MulliganGates } = await import('./mulligan-gates.ts');
    return new MulliganGates(this.#place, await this.#openStore(), (fill) => this.#filled(fill));
  }

  async limits(): Promise<Limited> {
    const { MulliganLimits } = await import('./mulligan-limits.ts');
    const crowdKey = typeof this.#guard === 'object' ? limitKey(-1, this.#guard) : '';
    return new MulliganLimits(await this.#openStore(), (fill) => this.#filled(fill), crowdKey);
  }

  async errors(): Promise<Grouped> {
    const { MulliganErrors } = await import('./mulligan-errors.ts');
    return new MulliganErrors(this.#place, await this.#openStore(), (fill) => this.#filled(fill));
  }

  async usage(): Promise<Usage> {
    if (this.#place.usage === undefined) throw new Error(`${this.#place.url} has no server`);
    return await this.#place.usage();
  }

  async watchLocks(): Promise<() => Promise<number>> {
    if (this.#place.watchLocks === undefined) throw new Error(`${this.#place.url} has no server`);
    return await this.#place.watchLocks();
  }

  async close(): Promise<void> {
    await this.#mulligan?.close();
    await this.#place.close();
  }

  async erase(): Promise<void> {
    await this.#place.erase();
  }

  #definition(kind: Kind): AnyJobDefinition {
    const definition = this.#definitions.get(kind);
    if (definition === undefined) throw new Error(`jobs ${kind} need a guard`);
    return definition;
  }

  #fillPartitions(counts: PartitionCounts): Promise<void> {
    return this.#filled((store) => fillPartitions(store, counts));
  }

  /** By another store, where two can share the jobs, so that what is measured later has cached nothing. */
  async #filled(fill: (store: Store) => Promise<void>): Promise<void> {
    const own = await this.#openStore();
    if (this.#place.isInProcess) return await fill(own);
    await this.#place.syncCommits?.('never');
    const store = await openStore(this.#place.url, systemClock);
    try {
      await fill(store);
    } finally {
      await store.close();
      await this.#place.syncCommits?.('always');
    }
  }

  async #openStore(): Promise<Store> {
    await this.#queue();
    return this.#store as Store;
  }

  /** Opened when it is first used: a worker process must not be in the way of the one that erases. */
  async #queue(): Promise<Mulligan> {
    if (this.#mulligan !== undefined) return this.#mulligan;
    this.#store = await openStore(this.#place.url, systemClock);
    this.#mulligan = await Mulligan.open(this.#store, { jobs: [...this.#definitions.values()], log: () => {} });
    return this.#mulligan;
  }
}

const HELD = 'held/';

const policy: NewJob['policy'] = {
  maxAttempts: 4,
  backoff: { kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 },
  jitter: 'full',
  deadlineMs: null,
  maxCrashes: 3,
};

interface PartitionCounts {
  readonly jobs: number;
  readonly partitions: number;
  readonly held: number;
}

/** Commits without results take inputs as they are: see \`--against\`. */
function toEnqueue(mulligan: Mulligan, payloads: readonly Payload[]): { readonly input: Payload }[] {
  return 'result' in mulligan ? payloads.map((input) => ({ input })) : (payloads as unknown as { input: Payload }[]);
}

async function fillPartitions(store: Store, { jobs, partitions, held }: PartitionCounts): Promise<void> {
  const resource = (n: number): string => `${n < held ? HELD : 'open/'}${n}`;
  await enqueueMany(store, jobs, (n) => ({ kind: 'noop', resource: resource(n % partitions) }));
  const hold = (n: number): Promise<void> => store.hold({ resource: resource(n) }, null);
  await inFlight(held, CALLS_IN_FLIGHT, Number.POSITIVE_INFINITY, hold);
}

/** Due jobs by the store's own verb. */
export async function enqueueMany(
  store: Store,
  count: number,
  job: (n: number) => Pick<NewJob, 'resource' | 'limits'> & { readonly kind: Kind; readonly n?: number },
): Promise<void> {
  const newJob = (index: number): NewJob => {
    const { kind, n = 0, ...waits } = job(index);
    return {
      ...waits,
      id: systemClock.newId(),
      name: kind,
      queue: 'default',
      retryQueue: null,
      priority: 5,
      payload: JSON.stringify({ n, kind, sentAt: 0 } satisfies Payload),
      policy,
      delayMs: 0,
      dueAt: null,
      key: null,
      keyLife: 'finished',
    };
  };
  for (let done = 0; done < count; done += FILL_PART) {
    await store.enqueue(Array.from({ length: Math.min(FILL_PART, count - done) }, (_, n) => newJob(done + n)));
  }
}

async function claimUnheld(store: Store, limit: number): Promise<number> {
  const { tookMs, jobs } = await claimKept(store, limit);
  const held = jobs.find(({ resource }) => resource?.startsWith(HELD));
  if (held !== undefined) throw new Error(`wrong: a claim took a job of ${held.resource}, which is held`);
  return tookMs;
}

/** The jobs stay claimed. */
export async function claimKept(store: Store, limit: number): Promise<{ tookMs: number; jobs: readonly ClaimedJob[] }> {
  const startedAt = wall();
  const queues = [{ ...quota(limit), retry: 0 }];
  const { jobs } = await store.claim({ worker: 'bench-claims', leaseMs: KEPT_LEASE_MS, limit, queues });
  const tookMs = wall() - startedAt;
  if (jobs.length !== limit) throw new Error(`wrong: a claim of ${limit} got ${jobs.length}`);
  return { tookMs, jobs };
}

/** Throws unless all of these claimed jobs could be completed. */
export async function completeAll(
  store: Store,
  worker: string,
  { jobs, now }: { readonly jobs: readonly ClaimedJob[]; readonly now: number },
): Promise<void> {
  const end = { outcome: 'completed', decision: { kind: 'complete', rule: 'completed' }, error: null } as const;
  const answers = await store.settle(
    jobs.map(({ id, run }) => ({ ...end, id, run, worker, startedAt: now, endedAt: now })),
  );
  if (answers.some((answer) => answer !== 'settled')) throw new Error('wrong: a claimed job could not be completed');
}

/** As a worker asks that serves one queue: a fifth of its places is for retries, should there be any. */
export function quota(count: number): QueueQuota {
  return { queue: 'default', share: count, retry: count / 5, redrive: 0, suspect: 0, maxRetriesInFlight: null };
}

function memoryPlace(): Place {
  return {
    url: 'memory:',
    isInProcess: true,
    erase: async () => {},
    rows: async () => ({}),
    fillFinished: async () => 'memory keeps them, but no SQL reaches them',
    settleDown: async () => {},
    holdSnapshot: async () => null,
    close: async () => {},
  };
}

function sqlitePlace({ folder }: Servers, space: string): Place {
  const path = join(folder, `${space}.db`);
  const withDatabase = (use: (db: DatabaseSync) => void): void => {
    const db = new DatabaseSync(path, { timeout: 60_000 });
    try {
      use(db);
    } finally {
      db.close();
    }
  };
  return {
    url: `sqlite:${path}`,
    erase: async () => {
      for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
    },
    fillFinished: async (count) => {
      withDatabase((db) => fillSqlite(db, count));
      return null;
    },
    rows: async (tables) => {
      const counted: Record<string, number> = {};
      withDatabase((db) => {
        for (const table of tables) {
          if (db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) === undefined)
            continue;
          counted[table] = (db.prepare(`SELECT count(*) AS n FROM "${table}"`).get() as { n: number }).n;
        }
      });
      return counted;
    },
    settleDown: async () => withDatabase((db) => db.exec('ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)')),
    holdSnapshot: async () => {
      const db = new DatabaseSync(path, { readOnly: true });
      db.exec('BEGIN');
      db.prepare('SELECT count(*) FROM sqlite_schema').get();
      return async () => db.close();
    },
    close: async () => {},
  };
}

async function postgresPlace(servers: Servers, space: string): Promise<Place> {
  // Loaded when it is needed, so that the memory of the others does not count it.
  const { Database } = await import('./postgres.ts');
  const database = new Database(servers, space);
  return {
    url: database.url,
    erase: () => database.recreate(),
    fillFinished: async (count) => {
      await fillPostgres(database, count);
      return null;
    },
    rows: async (tables) => {
      const counted: Record<string, number> = {};
      for (const table of tables) {
        const [found] = await database.query("SELECT WHERE to_regclass('mulligan.' || $1) IS NOT NULL", [table]);
        if (found === undefined) continue;
        const [row] = await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM mulligan."${table}"`);
        counted[table] = row?.n ?? 0;
      }
      return counted;
    },
    settleDown: (filled) => database.settleDown(filled),
    holdSnapshot: () => database.holdSnapshot(),
    usage: () => database.usage(),
    watchLocks: () => database.watchLocks(),
    syncCommits: async (when) => {
      const setting = when === 'never' ? 'SET synchronous_commit = off' : 'RESET synchronous_commit';
      await database.query(`ALTER DATABASE "${space}" ${setting}`);
    },
    close: () => database.close(),
  };
}
