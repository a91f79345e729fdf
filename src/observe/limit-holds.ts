import { formatDuration } from '../duration.ts';
import type { Job } from '../job.ts';
import { isRetry } from '../lane.ts';
import type { LimitKey, LimitSettings, Rate } from '../limit/limit.ts';
import { spaceOf } from '../limit/rate.ts';
import type { Store } from '../store/store.ts';
import { count } from './gate-words.ts';

/* Why a due job does not start: which of its limits hold it back, until when, and how many wait before it. */

/** So many jobs are looked at for a job's place. */
const MOST_LOOKED_AT = 1_000;

/** A limit that keeps a due job from starting. */
export interface LimitHold extends LimitKey {
  /** What is full. `turn`: with a concurrency of 1, a job that failed before keeps the turn until it has ended. */
  readonly reason: 'concurrency' | 'turn' | 'total' | 'rate';
  /** What holds for the key. */
  readonly settings: LimitSettings;
  /** Jobs of the key that run; with reason `total`, jobs of all keys. */
  readonly running: number;
  /** Due jobs of the key that wait, this one among them, and the one that keeps the turn. */
  readonly waiting: number;
  /** How many of these were enqueued before it, and are due no later and no less urgent, or keep the turn. */
  readonly before: number;
  /** False when only the 1,000 jobs enqueued last before it were looked at: then there are at least `before`. */
  readonly isExact: boolean;
  /** When the rate of the key lets the next job start; null when another job must end first. */
  readonly until: number | null;
  /** The job that keeps the turn; null for other reasons. */
  readonly holder: string | null;
  /** When that job is due; null when it is due already. */
  readonly holderDueAt: number | null;
}

type HoldStore = Pick<Store, 'limits' | 'limitKeys' | 'list'>;

export async function limitHolds(store: HoldStore, job: Job, now: number): Promise<LimitHold[]> {
  // The trial of a suspect asks no limit.
  if (job.state !== 'ready' || job.limits.length === 0 || job.lane === 'suspect') return [];
  const earlier = await store.list({
    state: ['ready', 'retrying', 'scheduled'],
    after: job.id,
    limit: MOST_LOOKED_AT,
  });
  const holds = await Promise.all(job.limits.map((one) => holdOf(store, one, job, earlier, now)));
  return holds.filter((hold) => hold !== null);
}

async function holdOf(
  store: HoldStore,
  { limit, key }: LimitKey,
  job: Job,
  earlier: readonly Job[],
  now: number,
): Promise<LimitHold | null> {
  const [[all], [own]] = await Promise.all([
    store.limits({ names: [limit], limit: 1 }),
    store.limitKeys(limit, { keys: [key], limit: 1 }),
  ]);
  if (all === undefined || own === undefined) return null;
  const { settings, running, due, startsAt } = own;
  const ofKey = earlier.filter(({ limits }) => limits.some((one) => one.limit === limit && one.key === key));
  const { concurrency, total } = settings;
  // A job that keeps the turn waits among the retries: a job that snoozed at its first attempt does not.
  const holder = concurrency === 1 ? ofKey.find(({ lane }) => isRetry(lane)) : undefined;
  const before = ofKey.filter(
    (one) => one === holder || (one.priority <= job.priority && one.dueAt <= job.dueAt),
  ).length;
  // These are several reads, and jobs may have started in between.
  const waiting = Math.max(before + 1, due + (holder !== undefined && holder.dueAt > now ? 1 : 0));
  const isExact = earlier.length < MOST_LOOKED_AT;
  const common = { limit, key, settings, waiting, before, isExact, until: null, holder: null, holderDueAt: null };
  if (concurrency !== null && running >= concurrency) return { ...common, reason: 'concurrency', running };
  if (holder !== undefined) {
    return {
      ...common,
      reason: 'turn',
      running,
      holder: holder.id,
      holderDueAt: holder.dueAt > now ? holder.dueAt : null,
    };
  }
  if (total !== null && all.running >= total) return { ...common, reason: 'total', running: all.running };
  if (startsAt === null || startsAt <= now) return null;
  return { ...common, reason: 'rate', running, until: startsAt };
}

const NOTHING_STARTS = (what: string): string => `its ${what} is 0, so nothing starts until that is changed`;

/** A sentence for the person who asks; `time` says how a point in time is written. */
export function holdWords(hold: LimitHold, time: (at: number) => string): string {
  const { before, isExact, waiting } = hold;
  const place = `${isExact ? '' : 'at least '}${before} of them before it`;
  const others = waiting > 1 ? ` ${count(waiting, 'job')} ${ofKey(hold)} wait, ${place}${ownStart(hold, time)}.` : '';
  return `Limit ${hold.limit}${hold.key === '' ? '' : `, key ${hold.key}`}: ${reasonWords(hold, time)}.${others}`;
}

function reasonWords(hold: LimitHold, time: (at: number) => string): string {
  const { reason, settings, running, until, holder, holderDueAt } = hold;
  switch (reason) {
    case 'concurrency':
      return settings.concurrency === 0 ? NOTHING_STARTS('concurrency') : inUse(running, settings.concurrency);
    case 'turn':
      return `job ${holder} has failed before and keeps the turn until it has completed, is dead or was cancelled${holderDueAt === null ? '' : `. That job is due ${time(holderDueAt)}; mulligan jobs run-now ${holder} makes it due now`}`;
    case 'total':
      if (settings.total === 0) return NOTHING_STARTS('total');
      return `${inUse(running, settings.total)}, of all keys together`;
    case 'rate':
      return `rate of ${limitRateWords(settings.rate as Rate)}; the next start ${ofKey(hold)} is at ${time(until as number)}`;
  }
}

/** More run than may after the limit was lowered. */
function inUse(running: number, allowed: number | null): string {
  return running > (allowed ?? running) ? `${running} run, ${allowed} allowed` : `${running} of ${allowed} run`;
}

/** An estimate: those before it may end, and other limits or priorities may come in between. */
function ownStart({ settings: { rate }, until, before, isExact }: LimitHold, time: (at: number) => string): string {
  if (rate === null || until === null || before === 0) return '';
  const at = time(Math.round(until + before * spaceOf(rate)));
  return isExact ? `: by the rate it starts at about ${at}` : `: by the rate it starts no sooner than ${at}`;
}

function ofKey({ key }: LimitKey): string {
  return key === '' ? 'of the limit' : 'of the key';
}

/** `90 per 10s`, and the burst where there is one. */
export function limitRateWords({ limit, perMs, burst }: Rate): string {
  return `${limit} per ${formatDuration(perMs)}${burst === 1 ? '' : `, burst ${burst}`}`;
}
