import { systemClock } from '../clock.ts';
import { parseDuration } from '../duration.ts';
import type { Job, RunRecord } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import { asideAfter } from '../retry/decision.ts';
import type { RegisteredWorker } from '../store/store.ts';
import { REJECTED_PAYLOAD_TIMEOUT, UNKNOWN_JOB_TIMEOUT } from '../worker/options.ts';
import { rejectedBefore } from '../worker/versions.ts';
import { pointInTime } from './time.ts';

/** Why a job that waits does not run: sentences for the person who asks. */
export async function waitReasons(mulligan: Mulligan, job: Job, ledger: readonly RunRecord[]): Promise<string[]> {
  if (!['scheduled', 'ready', 'retrying'].includes(job.state)) return [];
  const reasons: string[] = [];
  if (job.state !== 'ready')
    reasons.push(
      `It is due ${pointInTime(job.dueAt, systemClock.now())}; mulligan jobs run-now ${job.id} starts it now.`,
    );
  reasons.push(...(await asideReasons(job, ledger)));
  const unserved = unservedReasons(job, await mulligan.workers.list());
  const queues = await mulligan.queues.list();
  if (queues.find(({ queue }) => queue === job.queue)?.paused) {
    reasons.push(`Its queue ${job.queue} is paused: mulligan queues resume ${job.queue}.`);
  }
  if (job.resource !== null) {
    const { gate, explanation } = await mulligan.gates.show(job.resource, { kind: 'resource' });
    const holds = gate.phase !== 'closed' || gate.pin !== null || gate.heldUntil !== null;
    if (holds) reasons.push(`Its gate ${job.resource}: ${explanation.join(' ')}`);
  }
  reasons.push(...unserved);
  if (reasons.length > 0) return reasons;
  const alone = job.lane === 'suspect' ? ' Its next crash would bury it, so it waits to run alone.' : '';
  return [
    `It is due and nothing holds it back: a worker that serves queue ${job.queue} and knows ${job.name} takes it next.${alone}`,
  ];
}

/** A worker could not run it, and left it to others. */
async function asideReasons({ id, name }: Job, ledger: readonly RunRecord[]): Promise<string[]> {
  const last = ledger.at(-1);
  const aside = last === undefined ? null : asideAfter(last.decision);
  if (last === undefined || aside === null) return [];
  if (aside.isRejected) {
    const before = await rejectedBefore({ runs: async () => [...ledger] }, id);
    const deadAt = (before?.since ?? last.endedAt) + parseDuration(REJECTED_PAYLOAD_TIMEOUT, 'rejectedPayloadTimeout');
    return [
      `Worker ${last.worker} rejected its payload, as its last error says; other workers that know ${name} try it. If none can read it, it is dead after ${pointInTime(deadAt, systemClock.now())}, where workers have the default rejectedPayloadTimeout.`,
    ];
  }
  const version = aside.version > 1 ? `, version ${aside.version} or later` : '';
  return [
    `Worker ${last.worker} has no handler for it; it waits for a worker that knows ${name}${version}. If none comes, it is dead ${UNKNOWN_JOB_TIMEOUT} after it fell due, where workers have the default unknownJobTimeout.`,
  ];
}

/** No worker that is alive would take it. */
function unservedReasons({ queue, name }: Job, workers: readonly RegisteredWorker[]): string[] {
  const alive = workers.filter((worker) => worker.alive);
  if (alive.length === 0) return ['No worker is alive. See mulligan workers list.'];
  const serving = alive.filter(({ queues }) => queues.includes(queue));
  if (serving.length === 0) return [`No live worker serves its queue ${queue}. See mulligan workers list.`];
  if (serving.some(({ jobs }) => jobs.includes(name))) return [];
  return [`No live worker that serves its queue ${queue} has a handler for ${name}. See mulligan workers list.`];
}
