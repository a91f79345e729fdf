/*
 * What other queues call our options. Who comes from BullMQ, pg-boss or Graphile Worker writes their names; each place that
 * refuses an unknown option answers with ours.
 */

interface Ours {
  /** The option here; with a dot, one inside another. */
  readonly path: string;
  /** Where it is given. */
  readonly of: string;
  readonly note?: string;
  /** Another place that does not take it is not told of it. */
  readonly isOnlyInside?: true;
}

const key: Ours = { path: 'key', of: 'enqueue', note: 'One live job has it at a time.' };
const maxAttempts: Ours = {
  path: 'retry.maxAttempts',
  of: 'defineJob and enqueue',
  note: 'The first attempt counts, too.',
};
const maxRetries: Ours = { path: 'retry.maxRetries', of: 'defineJob and enqueue' };
const backoff: Ours = {
  path: 'retry.backoff',
  of: 'defineJob and enqueue',
  note: "Such as { kind: 'fixed', base: '5s' }.",
};
const maxDelay: Ours = { path: 'retry.backoff.max', of: 'defineJob and enqueue' };
const retention = (state: string): Ours => ({ path: `retention.${state}`, of: 'defineJob', note: "Such as '30d'." });
const timeout: Ours = { path: 'timeout', of: 'defineJob', note: "A duration, such as '5m'." };
const delay: Ours = { path: 'delay', of: 'enqueue', note: 'Or at, with a Date.' };
const throttle: Ours = { path: 'throttle', of: 'enqueue', note: 'Together with key.' };
const debounce: Ours = { path: 'debounce', of: 'enqueue', note: 'Together with key.' };
const limit: Ours = { path: 'limit', of: 'defineJob', note: 'With a rate, a concurrency, or both.' };
const poll: Ours = { path: 'poll', of: 'work' };
const schedules: Ours = { path: 'schedules', of: 'Mulligan.open', note: 'Or mulligan.schedules.' };
const lease: Ours = { path: 'lease', of: 'work' };
const concurrency: Ours = { path: 'concurrency', of: 'work' };
const queue: Ours = { path: 'queue', of: 'defineJob and enqueue' };

/** By their name. Of several the first holds that the place takes. A Map, so that no name reaches into a prototype. */
const table: ReadonlyMap<string, readonly Ours[]> = new Map(
  Object.entries({
    // BullMQ
    jobId: [key],
    attempts: [maxAttempts],
    backoff: [backoff],
    type: [{ path: 'kind', of: 'retry.backoff', isOnlyInside: true }],
    delay: [{ path: 'base', of: 'retry.backoff', isOnlyInside: true }, delay],
    removeOnComplete: [retention('completed')],
    removeOnFail: [retention('dead')],
    deduplication: [key],
    repeat: [schedules],
    limiter: [limit],
    lockDuration: [lease],
    stalledInterval: [lease],
    maxStalledCount: [{ path: 'retry.maxCrashes', of: 'defineJob and enqueue' }],
    defaultJobOptions: [{ path: 'queues', of: 'Mulligan.open', note: 'Or the options of defineJob.' }],
    lifo: [{ path: 'priority', of: 'enqueue', note: '0 is first.' }],
    // pg-boss
    singletonKey: [key],
    singletonSeconds: [throttle],
    singletonNextSlot: [debounce],
    retryLimit: [maxRetries],
    retryDelay: [{ path: 'retry.backoff.base', of: 'defineJob and enqueue' }],
    retryBackoff: [backoff],
    retryDelayMax: [maxDelay],
    startAfter: [delay],
    expireInSeconds: [timeout],
    expireInMinutes: [timeout],
    expireInHours: [timeout],
    expireIn: [timeout],
    deleteAfterSeconds: [retention('completed')],
    retentionSeconds: [{ path: 'retry.deadline', of: 'defineJob and enqueue' }],
    retentionDays: [{ path: 'retry.deadline', of: 'defineJob and enqueue' }],
    keepUntil: [{ path: 'retry.deadline', of: 'defineJob and enqueue' }],
    pollingIntervalSeconds: [poll],
    teamSize: [concurrency],
    teamConcurrency: [concurrency],
    localConcurrency: [concurrency],
    // Graphile Worker
    jobKey: [key],
    jobKeyMode: [debounce],
    runAt: [{ path: 'at', of: 'enqueue', note: 'A Date; or delay.' }],
    queueName: [queue],
    maxAttempts: [maxAttempts],
    maxRetries: [maxRetries],
    concurrentJobs: [concurrency],
    pollInterval: [poll],
    crontab: [schedules],
  } satisfies Record<string, readonly Ours[]>),
);

/** The option of a place that takes these which another queue calls so; null when there is none. */
export function oursAmong(option: string, known: readonly string[]): string | null {
  const paths = (table.get(option) ?? []).map(({ path }) => path.split('.'));
  return paths.flatMap((path) => path.findLast((name) => known.includes(name)) ?? [])[0] ?? null;
}

/** What to write instead of an option of another queue, in a place that takes these; null when it is not one of theirs. */
export function ourNameFor(option: string, known: readonly string[]): string | null {
  const here = oursAmong(option, known);
  const all = table.get(option) ?? [];
  const ours = all.find(({ path, isOnlyInside }) => (here === null ? !isOnlyInside : path.split('.').includes(here)));
  if (ours === undefined) return null;
  const names = ours.path.split('.');
  const [first = '', ...inside] = here === null ? names : names.slice(names.indexOf(here));
  const nested = inside.reduceRight((text, name) => (text === '' ? `{ ${name} }` : `{ ${name}: ${text} }`), '');
  const where = here === null ? ` of ${ours.of}` : '';
  return `Here it is ${first}${nested === '' ? '' : `: ${nested}`}${where}.${ours.note === undefined ? '' : ` ${ours.note}`}`;
}
