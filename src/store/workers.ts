/** What a worker says of itself, so that operators see what runs where. */
export interface WorkerDescription {
  /** The name that `work({ name })` gave it. */
  readonly name: string | null;
  /** The version of the application, as `work({ version })` gave it. */
  readonly version: string | null;
  /** The version of Mulligan; null for a worker that speaks HTTP. */
  readonly mulligan: string | null;
  readonly host: string;
  /** Null for a worker that speaks HTTP. */
  readonly pid: number | null;
  /** How many jobs it runs at once, at most. */
  readonly concurrency: number;
  readonly queues: readonly string[];
  /** The names of the jobs that it has handlers for. */
  readonly jobs: readonly string[];
  /** How many jobs ran when it was last seen; null when that is not known. */
  readonly running: number | null;
  /** How long its leases are; null when that is not known. */
  readonly leaseMs: number | null;
  /** The longest that its event loop was blocked in the last minutes; null when that is not measured. */
  readonly loopDelayMs: number | null;
  /** Of a worker that speaks HTTP, which the server registers from its claims; null for all others. */
  readonly http: HttpWorker | null;
  /** The name of the token with which it reaches the store through a server; left out for a worker that reaches it by itself. */
  readonly token?: string;
}

export interface HttpWorker {
  /** The `User-Agent` of its requests. */
  readonly agent: string | null;
  /** Whether its claims name no jobs, so that it gets all of its queues. */
  readonly takesAll: boolean;
}

/** By when a worker was last seen, see `SILENT_AFTER_MS` and `LOST_AFTER_MS`. */
export type WorkerState = 'alive' | 'silent' | 'lost';

/** A worker as the store knows it. All times are the store's. */
export interface RegisteredWorker extends WorkerDescription {
  /** As the ledger names it. */
  readonly id: string;
  readonly startedAt: number;
  readonly lastSeenAt: number;
  /** `silent` after half a minute: it should have been seen. `lost` after a minute: it was killed, hangs, or cannot reach the store. */
  readonly state: WorkerState;
  /** False when it is `lost`. */
  readonly alive: boolean;
}

/** How often a worker is seen. Each time is one small write, so rather rarely. */
export const SEEN_EVERY_MS = 15_000;
/** A worker is seen after half to one and a half of `SEEN_EVERY_MS`. One that was not seen for so long has missed that. */
export const SILENT_AFTER_MS: number = 2 * SEEN_EVERY_MS;
/** Four times that: a worker whose store is slow now and then is not taken for dead. */
export const LOST_AFTER_MS: number = 4 * SEEN_EVERY_MS;
/** A worker that was not seen for so long is forgotten. */
export const FORGOTTEN_AFTER_MS = 3_600_000;

/** What descriptions of earlier versions do not have. */
const unknown = { running: null, leaseMs: null, loopDelayMs: null, http: null };

/** `stored` is the description as JSON text. */
export function registeredWorker(
  id: string,
  stored: string,
  startedAt: number,
  lastSeenAt: number,
  now: number,
): RegisteredWorker {
  const description = { ...unknown, ...(JSON.parse(stored) as WorkerDescription) };
  const state = stateAfter(now - lastSeenAt);
  return { ...description, id, startedAt, lastSeenAt, state, alive: state !== 'lost' };
}

function stateAfter(unseenMs: number): WorkerState {
  if (unseenMs >= LOST_AFTER_MS) return 'lost';
  return unseenMs > SILENT_AFTER_MS ? 'silent' : 'alive';
}

/** Whether it takes jobs of this name, from the queues that it serves. */
export function takesJob({ jobs, http }: Pick<WorkerDescription, 'jobs' | 'http'>, name: string): boolean {
  return http?.takesAll === true || jobs.includes(name);
}

/** Leases are renewed three times each: a pause of half a lease makes at least one renewal late, and leaves little time for the next. */
const DANGEROUS_PART = 1 / 2;

/** Whether its event loop was blocked for so long that leases of its jobs may have expired. */
export function endangersLeases({ loopDelayMs, leaseMs }: Pick<WorkerDescription, 'loopDelayMs' | 'leaseMs'>): boolean {
  return loopDelayMs !== null && leaseMs !== null && loopDelayMs >= leaseMs * DANGEROUS_PART;
}
