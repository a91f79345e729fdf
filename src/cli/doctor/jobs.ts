import { states } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';
import { span } from '../time.ts';
import { type Check, ok, warn } from './check.ts';
import { gates, MOST_GATES } from './gates.ts';
import { MOST_SCHEDULES, schedules } from './schedules.ts';
import { count, some } from './words.ts';

/** Times that no verb of a store returns, in store time. */
export interface JobTimes {
  readonly now: number;
  /** Of the waiting jobs whose queue is not paused. */
  readonly oldestDueAt: number | null;
  readonly expiredLeases: number;
  readonly oldestLeaseEndedAt: number | null;
}

/** Workers look for due jobs every second, and for expired leases several times a minute. */
const LONG_WAIT_MS = 60_000;

/** Checks of the jobs themselves, the same for every store. `known`: the names of jobs that workers know, if that can be told. */
export async function jobChecks(
  mulligan: Mulligan,
  times: JobTimes,
  known: ReadonlySet<string> | null = null,
): Promise<Check[]> {
  const [stats, queues, listed, scheduled] = await Promise.all([
    mulligan.stats(),
    mulligan.queues.list(),
    mulligan.gates.list({ limit: MOST_GATES }),
    mulligan.schedules.list({ limit: MOST_SCHEDULES }),
  ]);
  const inStates = states.filter((state) => stats.states[state] > 0).map((state) => `${stats.states[state]} ${state}`);
  return [
    ok('jobs', inStates.length === 0 ? 'none yet' : inStates.join(', ')),
    waiting(times),
    leases(times),
    pauses(queues.filter(({ paused }) => paused).map(({ queue }) => queue)),
    gates(listed),
    schedules(scheduled, known, times.now),
  ];
}

function waiting({ now, oldestDueAt }: JobTimes): Check {
  const name = 'waiting';
  if (oldestDueAt === null || oldestDueAt > now) return ok(name, 'no job is due');
  const found = `the oldest due job has waited for ${span(now - oldestDueAt)}`;
  if (now - oldestDueAt < LONG_WAIT_MS) return ok(name, found);
  return warn(
    name,
    found,
    'check that workers run and serve its queue (mulligan queues list) and that no gate holds it (mulligan gates list), or add workers',
  );
}

function leases({ now, expiredLeases, oldestLeaseEndedAt }: JobTimes): Check {
  const name = 'leases';
  if (expiredLeases === 0 || oldestLeaseEndedAt === null) return ok(name, 'none has expired');
  const ago = now - oldestLeaseEndedAt;
  const found = `${count(expiredLeases, 'lease has', 'leases have')} expired, the oldest ${span(ago)} ago`;
  if (ago < LONG_WAIT_MS) return ok(name, `${found}; a worker will rescue them soon`);
  return warn(name, found, 'start a worker: each one rescues the crashed runs of all queues');
}

function pauses(queues: readonly string[]): Check {
  if (queues.length === 0) return ok('paused queues', 'none');
  return warn('paused queues', some(queues), 'nothing is claimed from them; mulligan queues resume QUEUE');
}
