import { states } from '../../job.ts';
import type { Mulligan } from '../../mulligan.ts';
import type { Stats } from '../../observe/stats.ts';
import { parseQueue } from '../../store/aside.ts';
import { limitsOfQueue } from '../../store/limited-queue.ts';
import { type Check, ok, warn } from './check.ts';
import { gates, MOST_GATES } from './gates.ts';
import { type ExpiredLeases, leases } from './leases.ts';
import { heldByLimits } from './limits.ts';
import { MOST_SCHEDULES, schedules } from './schedules.ts';
import { servedChecks, type WaitingJobs } from './served.ts';
import { waiting } from './waiting.ts';
import { count, some } from './words.ts';

/** As a store has them: the queue says whether they are aside, and their limits, unless these are given. */
export type StoredWaitingJobs = Omit<WaitingJobs, 'limits' | 'isAside'> & Partial<Pick<WaitingJobs, 'limits'>>;

/** Times that no verb of a store returns, in store time. */
export interface JobTimes extends ExpiredLeases {
  /** With the queues as they are stored: jobs that are set aside, or behind limits, wait in queues of their own. */
  readonly waiting: readonly StoredWaitingJobs[];
}

/** Checks of the jobs themselves, the same for every store. `named`: the jobs that the user named as known, if any. */
export async function jobChecks(
  mulligan: Mulligan,
  times: JobTimes,
  named: ReadonlySet<string> | null = null,
): Promise<Check[]> {
  const [stats, queues, listed, scheduled, workers] = await Promise.all([
    mulligan.stats(),
    mulligan.queues.list(),
    mulligan.gates.list({ limit: MOST_GATES }),
    mulligan.schedules.list({ limit: MOST_SCHEDULES }),
    mulligan.workers.list(),
  ]);
  const waitingJobs = times.waiting.map((group) => {
    const { queue, aside } = parseQueue(group.queue);
    // The queue of jobs behind limits that are not aside names no job.
    const isAside = aside !== null && aside.name !== '';
    return { ...group, queue, limits: group.limits ?? limitsOfQueue(group.queue), isAside };
  });
  const paused = queues.filter((one) => one.paused).map(({ queue }) => queue);
  const alive = workers.filter((worker) => worker.alive);
  const known = named ?? (alive.length === 0 ? null : new Set(alive.flatMap(({ jobs }) => jobs)));
  const inStates = states.filter((state) => stats.states[state] > 0).map((state) => `${stats.states[state]} ${state}`);
  return [
    ok('jobs', inStates.length === 0 ? 'none yet' : inStates.join(', ')),
    dead(stats),
    waiting(times.now, await heldByLimits(mulligan, waitingJobs, times.now), new Set(paused)),
    ...rejected(times.waiting),
    ...servedChecks(waitingJobs, workers, times.now),
    leases(times, workers),
    pauses(paused),
    gates(listed),
    schedules(scheduled, known, times.now),
  ];
}

/** Dead jobs are kept for long, so they are no reason to warn. */
function dead({ states: { dead }, names }: Stats): Check {
  if (dead === 0) return ok('dead jobs', 'none');
  const byName = Object.entries(names)
    .filter(([, own]) => own.states.dead > 0)
    .sort(([, a], [, b]) => b.states.dead - a.states.dead);
  const found = `${count(dead, 'job')}: ${some(byName.map(([name, own]) => `${name} (${own.states.dead})`))}`;
  return { ...ok('dead jobs', found), advice: 'mulligan errors list --state dead shows what they died of' };
}

/** They die an hour after they were first rejected, unless a worker can read them. */
function rejected(waiting: readonly StoredWaitingJobs[]): Check[] {
  const groups = waiting.filter(({ queue }) => parseQueue(queue).aside?.isRejected);
  if (groups.length === 0) return [];
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  const names = some([...new Set(groups.map(({ name }) => name))]);
  return [
    warn(
      'rejected payloads',
      `${count(total, 'job')} that the schema of a worker rejected: ${names}`,
      'mulligan errors list shows why; deploy workers that can read them before they are dead (rejectedPayloadTimeout)',
    ),
  ];
}

function pauses(queues: readonly string[]): Check {
  if (queues.length === 0) return ok('paused queues', 'none');
  return warn('paused queues', some(queues), 'nothing is claimed from them; mulligan queues resume QUEUE');
}
