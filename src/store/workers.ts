/** What a worker says of itself, so that operators see what runs where. */
export interface WorkerDescription {
  /** The name that `work({ name })` gave it. */
  readonly name: string | null;
  /** The version of the application, as `work({ version })` gave it. */
  readonly version: string | null;
  /** The version of Mulligan. */
  readonly mulligan: string;
  readonly host: string;
  readonly pid: number;
  readonly concurrency: number;
  readonly queues: readonly string[];
  /** The names of the jobs that it has handlers for. */
  readonly jobs: readonly string[];
}

/** A worker as the store knows it. All times are the store's. */
export interface RegisteredWorker extends WorkerDescription {
  /** As the ledger names it. */
  readonly id: string;
  readonly startedAt: number;
  readonly lastSeenAt: number;
  /** False when it has not been seen for a minute: it was killed, or cannot reach the store. */
  readonly alive: boolean;
}

/** How often a worker is seen. Each time is one small write, so rather rarely. */
export const SEEN_EVERY_MS = 15_000;
/** Four times that: a worker whose store is slow now and then is not taken for dead. */
const ALIVE_MS = 60_000;
/** A worker that was not seen for so long is forgotten. */
export const FORGOTTEN_AFTER_MS = 3_600_000;

/** `stored` is the description as JSON text. */
export function registeredWorker(
  id: string,
  stored: string,
  startedAt: number,
  lastSeenAt: number,
  now: number,
): RegisteredWorker {
  const description = JSON.parse(stored) as WorkerDescription;
  return { ...description, id, startedAt, lastSeenAt, alive: now - lastSeenAt < ALIVE_MS };
}
