import { endangersLeases, type RegisteredWorker, takesJob } from '../../store/store.ts';
import { span } from '../time.ts';
import { type Check, ok, warn } from './check.ts';
import { added, count, some } from './words.ts';

/** Jobs of one name that wait in one queue, whether they are due or not. */
export interface WaitingJobs {
  readonly queue: string;
  readonly name: string;
  readonly count: number;
  readonly due: number;
  readonly oldestDueAt: number;
  /** The resource whose gate holds them back, or asks them before they start; null for none. */
  readonly gate: string | null;
  /** Names of the limits that they wait behind, whether these have room or not. */
  readonly limits: readonly string[];
  /** Whether a worker has set them aside: it does not know their name or version, or its schema rejected their payloads. */
  readonly isAside: boolean;
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
    ...(alive.length === 0 ? [] : [knownNames(waiting, alive), servedQueues(waiting, alive), ...eventLoops(alive)]),
  ];
}

/** A worker that was just killed looks like one that lives until it has not been seen for long, so the check says when it was. */
function liveWorkers(waiting: readonly WaitingJobs[], workers: readonly RegisteredWorker[], now: number): Check {
  const name = 'workers';
  const [seen, silent, lost] = (['alive', 'silent', 'lost'] as const).map((state) =>
    workers.filter((worker) => worker.state === state),
  ) as [RegisteredWorker[], RegisteredWorker[], RegisteredWorker[]];
  const each = (group: readonly RegisteredWorker[]): string[] =>
    group.map(({ id, lastSeenAt }) => `${id} (${span(Math.max(0, now - lastSeenAt))} ago)`);
  const found = [
    ...(seen.length === 0 ? [] : [`${count(seen.length, 'worker')}, last seen ${seenAgo(seen, now)}`]),
    ...(silent.length === 0 ? [] : [`${count(silent.length, 'is', 'are')} silent, last seen: ${some(each(silent))}`]),
    ...(seen.length + silent.length === 0 ? ['none is alive'] : []),
    ...(lost.length === 0 ? [] : [`${count(lost.length, 'was', 'were')} lost: ${some(each(lost))}`]),
  ].join('; ');
  if (seen.length + silent.length === 0 && waiting.length > 0) {
    const what = `${found}, and jobs wait: ${some(byName(waiting))}`;
    return warn(name, what, 'start a worker: mulligan work --jobs FILE, or mulligan.work() in a program');
  }
  if (lost.length + silent.length === 0) return ok(name, found);
  return warn(name, found, 'see why: they were killed, hang, or cannot reach the database (mulligan workers list)');
}

/** `4s ago`, or `4s to 13s ago`. */
function seenAgo(workers: readonly RegisteredWorker[], now: number): string {
  const ages = workers.map(({ lastSeenAt }) => Math.max(0, now - lastSeenAt));
  const [first, last] = [span(Math.min(...ages)), span(Math.max(...ages))];
  return first === last ? `${first} ago` : `${first} to ${last} ago`;
}

function knownNames(waiting: readonly WaitingJobs[], alive: readonly RegisteredWorker[]): Check {
  const name = 'job names';
  const unknown = waiting.filter((group) => !alive.some((worker) => takesJob(worker, group.name)));
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

/** While a handler computes without a pause, its worker renews no lease, and its jobs run twice. */
function eventLoops(alive: readonly RegisteredWorker[]): Check[] {
  const name = 'event loops';
  const blocked = alive.filter(endangersLeases);
  if (blocked.length > 0) {
    const each = blocked.map(
      ({ id, loopDelayMs, leaseMs }) => `${id} for ${span(loopDelayMs ?? 0)}, with leases of ${span(leaseMs ?? 0)}`,
    );
    return [
      warn(
        name,
        `blocked so long that leases are in danger: ${some(each)}`,
        'move long computation to a worker thread or another process, or give work({ lease }) more time',
      ),
    ];
  }
  const measured = alive.flatMap(({ loopDelayMs }) => loopDelayMs ?? []);
  return measured.length === 0
    ? []
    : [ok(name, `blocked for ${span(Math.max(...measured))} at most in the last minutes`)];
}

function byName(waiting: readonly WaitingJobs[]): string[] {
  return added(waiting.map(({ name, count: amount }) => ({ text: name, amount })));
}

function byQueue(waiting: readonly WaitingJobs[]): string[] {
  return added(waiting.map(({ queue, count: amount }) => ({ text: queue, amount })));
}
