import {
  checkInteger,
  checkList,
  checkName,
  checkNumber,
  isList,
  namesOf,
  readEntries,
  readOptions,
  unexpected,
} from '../config.ts';
import { type NamedQueues, queuesOf } from '../definition.ts';
import { type Duration, formatDuration, parseDuration } from '../duration.ts';
import { LONGEST_DELAY_MS } from '../retry/backoff.ts';
import type { QueuePlan } from './lanes.ts';

export const UNKNOWN_JOB_TIMEOUT = '7d';
export const REJECTED_PAYLOAD_TIMEOUT = '1h';

export interface WorkOptions {
  /**
   * Queues to serve: a list, or a map from queue to its own options. Default: the queues of the definitions, their retry
   * queues included. A list of your own must name these too, here or for another worker.
   */
  readonly queues?: readonly string[] | Readonly<Record<string, QueueOptions>>;
  /** How many jobs run at once. Default 10. */
  readonly concurrency?: number;
  /** How long a silent worker keeps its jobs. Default 30 s. */
  readonly lease?: Duration;
  /** The part of each claim that retries and redrives may take while fresh work waits. Default 0.2. */
  readonly retryShare?: number;
  /** Per queue and over all workers: how many retries may run at once. Default: no limit. */
  readonly maxRetriesInFlight?: number;
  /** How often to look for work when nothing wakes the worker. Default 1 s. */
  readonly poll?: Duration;
  /** A job whose name no worker has known for this long is dead (`no-handler`). Default 7 d. */
  readonly unknownJobTimeout?: Duration;
  /** A job whose payload workers have rejected for this long, and none could read, is dead (`unrecoverable`). Default 1 h. */
  readonly rejectedPayloadTimeout?: Duration;
  /** A name for this worker in the ledger; a random part is added. Default: host and process id. */
  readonly name?: string;
  /** The version of your application, for `mulligan workers list`: a release, a commit. */
  readonly version?: string;
}

export interface QueueOptions {
  /**
   * Its part of the worker's places, relative to the other queues. Default 1; for a queue that only retries go to, what
   * gives it `retryShare` of the places beside a queue of weight 1.
   */
  readonly weight?: number;
  readonly retryShare?: number;
  readonly maxRetriesInFlight?: number;
}

export interface WorkPlan {
  readonly queues: readonly QueuePlan[];
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly unknownJobTimeoutMs: number;
  readonly rejectedPayloadTimeoutMs: number;
  readonly name: string | null;
  readonly version: string | null;
}

export const workOptionNames: readonly (keyof WorkOptions)[] = namesOf<WorkOptions>({
  queues: true,
  concurrency: true,
  lease: true,
  retryShare: true,
  maxRetriesInFlight: true,
  poll: true,
  unknownJobTimeout: true,
  rejectedPayloadTimeout: true,
  name: true,
  version: true,
});
const queueOptionNames = namesOf<QueueOptions>({ weight: true, retryShare: true, maxRetriesInFlight: true });

const SHORTEST_LEASE_MS = 1_000;
const DEFAULT_RETRY_SHARE = 0.2;
const WEIGHTS = { min: 0.001, max: 1_000 } as const;

/** `named` are the queues of the definitions, which are served when the options name none. */
export function planWork(options: WorkOptions, named: NamedQueues = queuesOf([])): WorkPlan {
  const given = readOptions(options, workOptionNames, 'work');
  return {
    queues: planQueues(given, named),
    concurrency: checkInteger(given.concurrency ?? 10, 'work: concurrency', { min: 1, max: 10_000 }),
    leaseMs: readLease(given.lease ?? '30s'),
    pollMs: Math.max(1, parseDuration(given.poll ?? '1s', 'work: poll')),
    unknownJobTimeoutMs: parseDuration(given.unknownJobTimeout ?? UNKNOWN_JOB_TIMEOUT, 'work: unknownJobTimeout'),
    rejectedPayloadTimeoutMs: parseDuration(
      given.rejectedPayloadTimeout ?? REJECTED_PAYLOAD_TIMEOUT,
      'work: rejectedPayloadTimeout',
    ),
    name: given.name === undefined ? null : checkName(given.name, 'work: name'),
    version: given.version === undefined ? null : checkName(given.version, 'work: version'),
  };
}

/** How long runs may go on after they were told to stop, in ms. */
export function readGrace(options: { readonly grace?: Duration }, what: string): number {
  return parseDuration(readOptions(options, ['grace'], what).grace ?? '10s', `${what}: grace`);
}

/** Bounded, so that the end of a lease stays a number every store can hold. */
export function readLeaseMs(lease: Duration, what: string): number {
  const leaseMs = parseDuration(lease, what);
  if (leaseMs <= LONGEST_DELAY_MS) return leaseMs;
  throw unexpected(what, `at most ${formatDuration(LONGEST_DELAY_MS)}`, lease);
}

function readLease(lease: Duration): number {
  const leaseMs = readLeaseMs(lease, 'work: lease');
  if (leaseMs >= SHORTEST_LEASE_MS) return leaseMs;
  throw unexpected(
    'work: lease',
    `at least ${formatDuration(SHORTEST_LEASE_MS)}`,
    lease,
    'A shorter one would take jobs away from workers that merely paused.',
  );
}

function readQueues(queues: unknown): [string, unknown][] {
  if (isList(queues)) return checkList(queues, 'work: queues', '', (queue) => [checkName(queue, 'work: queues'), {}]);
  return readEntries(queues, 'work: queues', 'a list of queue names, or an object from queue name to options');
}

/** Retries keep to their share wherever they wait. */
function weightOfRetries(share: number): number {
  return Math.min(WEIGHTS.max, Math.max(WEIGHTS.min, share / (1 - share)));
}

function planQueues(options: WorkOptions, { all, onlyRetries }: NamedQueues): QueuePlan[] {
  const { queues = all, retryShare: shared, maxRetriesInFlight } = options;
  const entries = readQueues(queues);
  if (entries.length === 0) throw unexpected('work: queues', 'at least one queue', queues);
  const plans = entries.map(([queue, options]) => {
    const what = `work: queues.${checkName(queue, 'work: queues')}`;
    const own = readOptions(options as QueueOptions, queueOptionNames, what);
    const share = own.retryShare ?? shared ?? DEFAULT_RETRY_SHARE;
    const retryShare = checkNumber(share, `${what}.retryShare`, { min: 0, max: 1 });
    const usual = onlyRetries.has(queue) ? weightOfRetries(retryShare) : 1;
    const cap = own.maxRetriesInFlight ?? maxRetriesInFlight;
    return {
      queue,
      weight: checkNumber(own.weight ?? usual, `${what}.weight`, WEIGHTS),
      retryShare,
      maxRetriesInFlight: cap === undefined ? null : checkInteger(cap, `${what}.maxRetriesInFlight`, { min: 1 }),
    };
  });
  const doubled = plans.find((plan, index) => plans.findIndex(({ queue }) => queue === plan.queue) !== index);
  if (doubled) throw unexpected('work: queues', 'each queue once', doubled.queue);
  return plans;
}
