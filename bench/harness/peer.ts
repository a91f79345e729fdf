/** One queue under test. Everything the workloads know about it is in here. */
export interface Peer {
  readonly id: string;
  /** Its name in tables, version included. */
  readonly title: string;
  readonly engine: Engine;
  /** What differs from an installation out of the box, and the durability it runs with. */
  readonly settings: string;
  /** What it does not do in the same work, so that a difference in work is not read as a difference in speed. */
  readonly lacks: readonly string[];
  /** The delays before its retries, where the workloads ask for the smallest one and for 50 ms. */
  readonly backoff: { readonly smallest: string; readonly fifty: string };
  /** How it notices a crash, in W7. */
  readonly crashSettings: string;
  /** Lives in one process: its worker runs where its producer runs. */
  readonly inProcess?: boolean;
  /** Far slower than the rest, so that a few rounds of it would take as long as all others together. */
  readonly mostRounds?: number;
  /** Whether it limits jobs per key or only all together, and whether it promises that a limit is never exceeded. Left out: no limits. */
  readonly limits?: { readonly perKey: boolean; readonly strict: boolean };
  /** Workloads it does not take part in, with the reason. */
  readonly skips?: Readonly<Record<string, string>>;
  /** Why it cannot run here; null when it can. */
  unavailable(servers: Servers): Promise<string | null>;
  /**
   * `space` names a database, file or key prefix that is this measurement's alone. Without a
   * `guard` no job names a resource, and there are no kinds that do.
   */
  open(servers: Servers, space: string, guard?: Guard): Promise<OpenPeer>;
}

/**
 * What holds the jobs of a measurement back while their dependency is down. `gate`: the gate of a resource that all of them
 * name. `soft`: the soft gate of their name, which is what they have when nothing is set. `none`: nothing. Or a limit, and
 * otherwise what they have when nothing is set.
 */
export type Guard = 'gate' | 'soft' | 'none' | LimitGuard;

/** Each job counts under one of so many keys (`limitKey`), or all under one where that is null, and so many of a key run at once. */
export interface LimitGuard {
  readonly keys: number | null;
  readonly concurrency: number;
}

export type Engine = 'memory' | 'sqlite' | 'redis' | 'postgres';

/** What runs for the peers to connect to. A server that could not be started is there as the reason. */
export interface Servers {
  readonly postgres: Server;
  readonly redisEverySecond: Server;
  readonly redisAlways: Server;
  /** Files of peers that need no server. */
  readonly folder: string;
}

export type Server = { readonly url: string; readonly version: string } | { readonly reason: string };

/**
 * `noop` ends at once · `once` fails on its first run · `twice` fails on its first two · `storm` always fails · `work` takes 20 ms and writes
 * down when it starts and ends · `poison` kills its process · `call` ends at once and has a resource of its own · `down` has a
 * resource that refuses every connection · `flaky` is refused on its first run, and each job has another resource.
 */
export type Kind = 'noop' | 'once' | 'twice' | 'storm' | 'work' | 'poison' | 'call' | 'down' | 'flaky';

/** Kinds that only queues with gates are given. */
export type GatedKind = 'call' | 'down' | 'flaky';

export interface Payload {
  /** Numbered from 0 within a measurement; -1 for jobs that only fill the queue. */
  readonly n: number;
  readonly kind: Kind;
  /** Wall-clock ms just before it was enqueued; 0 where it is not needed. */
  readonly sentAt: number;
}

export interface Counts {
  /** Waiting for a worker, now or later. */
  readonly waiting: number;
  readonly running: number;
  /** Given up on. */
  readonly dead: number;
}

export type Handler = (payload: Payload) => void | Promise<void>;

export interface WorkerOptions {
  readonly concurrency: number;
  /** Notice crashes as soon as the peer's options allow (W7). */
  readonly crashSoon: boolean;
}

export interface Running {
  /** Ends gracefully: what runs is finished and recorded. */
  stop(): Promise<void>;
}

export interface Usage {
  /** CPU time of all processes of the server; null where the system does not tell. */
  readonly cpuMs: number | null;
  /** Written to the write-ahead log. */
  readonly walBytes: number;
  /** Tables and indexes of this queue. */
  readonly keptBytes: number;
}

/** A queue whose jobs wait in partitions that can be held. */
export interface Partitioned {
  /** Enqueues `jobs` due jobs over so many partitions, then holds the first `held` of these. */
  fill(jobs: number, partitions: number, held: number): Promise<void>;
  /** Ms that a claim of `limit` jobs takes; the jobs stay claimed. Throws when it got fewer, or one that is held. */
  claim(limit: number): Promise<number>;
}

/** A queue whose jobs stand behind gates. */
export interface Gated {
  /** Enqueues so many jobs `down`, and opens the gate of their resource by reports on failed runs. */
  shut(jobs: number): Promise<void>;
  /** Enqueues `jobs` due jobs behind `gates` gates of one parent that have all seen a failure; the first `open` are open. */
  fill(jobs: number, gates: number, open: number): Promise<void>;
  /** Ms that a claim of `limit` jobs takes; the jobs stay claimed. Throws when it got fewer, or one behind an open gate. */
  claim(limit: number): Promise<number>;
  /** Prunes, and keeps no finished job, until that changes nothing any more. Answers how many calls it took. */
  pruneAll(): Promise<number>;
  /** How many rows each table has that grows with the number of resources. */
  rows(): Promise<Readonly<Record<string, number>>>;
}

/** A queue whose jobs stand behind limits. */
export interface Limited {
  /** Enqueues so many jobs `work` of one key that no numbered job has, unless all share one. */
  crowd(jobs: number): Promise<void>;
  /**
   * Enqueues `jobs` due jobs over so many keys, `full` of which have as many jobs in flight as they may. A job of each key has
   * started, those of full keys first: a search for the key that was served the longest ago reads all of these first.
   */
  fill(jobs: number, keys: number, full: number): Promise<void>;
  /** Ms that a claim of `limit` jobs takes, which are then completed. Throws when it got fewer, or one of a full key. */
  claim(limit: number): Promise<number>;
}

/** A queue that groups dead jobs by their errors. */
export interface Grouped {
  /** Lets so many jobs die, of 12 kinds of errors. */
  bury(jobs: number): Promise<void>;
  /** Ms that a list of all groups takes. Throws when these are not 12, with so many jobs. */
  list(jobs: number): Promise<number>;
  /** Adds up what settlements have counted, as workers do now and then. */
  addUp(): Promise<void>;
  /** Ms that a count of the table takes that these jobs are in. */
  count(jobs: number): Promise<number>;
}

export interface OpenPeer {
  /** Leaves an empty queue with the peer's own schema; `crashSoon` as for workers, where it is a matter of the queue. */
  reset(crashSoon?: boolean): Promise<void>;
  /** To a queue that is there already, as far as its API can before work starts. Not measured. */
  connect(): Promise<void>;
  enqueueOne(payload: Payload): Promise<void>;
  /** One call, or as many as its API needs. */
  enqueueBulk(payloads: readonly Payload[]): Promise<void>;
  startWorker(handler: Handler, options: WorkerOptions): Promise<Running>;
  counts(): Promise<Counts>;
  /** Due jobs that every job of the workload goes before. */
  fillWaiting(count: number): Promise<void>;
  /** Completed jobs as the peer keeps them; answers why not, where it keeps none or cannot be filled. */
  fillFinished(count: number): Promise<string | null>;
  /**
   * What the engine should know before a drain: statistics, a clean checkpoint; after a fill also a vacuum, which would
   * otherwise come by itself in the middle. The same for all on an engine.
   */
  settleDown(filled?: boolean): Promise<void>;
  /** Holds a snapshot open until the answered function is called; null where the engine has none. */
  holdSnapshot(): Promise<(() => Promise<void>) | null>;
  /**
   * Ms that a claim of `count` filled-in jobs takes. They are completed, and as many filled in, so that the backlog
   * keeps its size; throws when it got others than it asked for.
   */
  timeClaim?(count: number): Promise<number>;
  /** Ms from the due time of a second attempt to its start, of each job of this kind, by the queue's own record. */
  secondAttempts?(kind: Kind): Promise<number[]>;
  readonly partitions?: Partitioned;
  gates?(): Promise<Gated>;
  limits?(): Promise<Limited>;
  errors?(): Promise<Grouped>;
  /** What its server has used so far. */
  usage?(): Promise<Usage>;
  /** From now until the answer is called: of a hundred sessions at work, how many waited for a lock. */
  watchLocks?(): Promise<() => Promise<number>>;
  close(): Promise<void>;
  /** Frees what it took on disk or in memory; after `close`. */
  erase(): Promise<void>;
}
