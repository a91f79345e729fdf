import type { RegisteredWorker } from '../../store/store.ts';
import { span } from '../time.ts';
import { type Check, ok, warn } from './check.ts';
import { count, some } from './words.ts';

/** Jobs of one name that wait in one queue, whether they are due or not. */
export interface WaitingJobs {
  readonly queue: string;
  readonly name: string;
  readonly count: number;
  readonly oldestDueAt: number;
  /** By a paused queue, or by a gate. */
  readonly held: boolean;
}

/** Whether there are workers for what waits: any at all, one that knows each job's name, one that serves each queue. */
export function servedChecks(
  waiting: readonly WaitingJobs[],
  workers: readonly RegisteredWorker[],
  now: number,
): Check[] {
  const alive = workers.filter((worker) => worker.alive);
  return [
    liveWorkers(waiting, workers, now),
    // Without any worker, the check above says so, and names what waits.
    ...(alive.length === 0 ? [] : [knownNames(waiting, alive), servedQueues(waiting, alive)]),
  ];
}

function liveWorkers(waiting: readonly WaitingJobs[], workers: readonly RegisteredWorker[], now: number): Check {
  const name = 'workers';
  const alive = workers.filter((worker) => worker.alive);
  const lost = workers.filter((worker) => !worker.alive);
  const lostOnes = lost.map(({ id, lastSeenAt }) => `${id} (${span(now - lastSeenAt)} ago)`);
  const found = [
    `${alive.length === 0 ? 'none is' : `${count(alive.length, 'is', 'are')}`} alive`,
    ...(lost.length === 0 ? [] : [`${count(lost.length, 'was', 'were')} lost: ${some(lostOnes)}`]),
  ].join('; ');
  if (alive.length === 0 && waiting.length > 0) {
    const what = `${found}, and jobs wait: ${some(byName(waiting))}`;
    return warn(name, what, 'start a worker: mulligan work --jobs FILE, or mulligan.work() in a program');
  }
  if (lost.length === 0) return ok(name, found);
  return warn(
    name,
    found,
    'see why they ended: they were killed, or cannot reach the database (mulligan workers list)',
  );
}

function knownNames(waiting: readonly WaitingJobs[], alive: readonly RegisteredWorker[]): Check {
  const name = 'job names';
  const known = new Set(alive.flatMap(({ jobs }) => jobs));
  const unknown = waiting.filter((group) => !known.has(group.name));
  if (unknown.length === 0) return ok(name, 'workers know all that wait');
  return warn(
    name,
    `no live worker knows ${some(byName(unknown))}`,
    'deploy a worker whose definitions have these names, or correct the name where it is enqueued and cancel these jobs',
  );
}

function servedQueues(waiting: readonly WaitingJobs[], alive: readonly RegisteredWorker[]): Check {
  const name = 'queues';
  const served = new Set(alive.flatMap(({ queues }) => queues));
  const unserved = waiting.filter(({ queue }) => !served.has(queue));
  if (unserved.length === 0) return ok(name, 'workers serve all that have waiting jobs');
  return warn(
    name,
    `no live worker serves ${some(byQueue(unserved))}`,
    'name them in the queues of a worker: mulligan work --queue QUEUE, or work({ queues })',
  );
}

function byName(waiting: readonly WaitingJobs[]): string[] {
  return added(waiting, ({ name }) => name);
}

function byQueue(waiting: readonly WaitingJobs[]): string[] {
  return added(waiting, ({ queue }) => queue);
}

/** The most first. */
function added(waiting: readonly WaitingJobs[], key: (group: WaitingJobs) => string): string[] {
  const groups = [...Map.groupBy(waiting, key)].map(
    ([text, members]) => [text, members.reduce((sum, { count }) => sum + count, 0)] as const,
  );
  return groups.sort(([, a], [, b]) => b - a).map(([text, amount]) => `${text} (${count(amount, 'job')})`);
}
