import { parseDuration } from '../duration.ts';
import { isGateName } from '../gates.ts';
import type { Job, RunRecord } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import { asideAfter } from '../retry/decision.ts';
import { type RegisteredWorker, takesJob } from '../store/store.ts';
import { REJECTED_PAYLOAD_TIMEOUT, UNKNOWN_JOB_TIMEOUT } from '../worker/options.ts';
import { rejectedBefore } from '../worker/versions.ts';
import { holdWords } from './limit-holds.ts';

/** One thing that keeps a job from running, as a sentence for the person who asks. */
export interface WaitReason {
  /** `next`: nothing does. `unserved`: no live worker takes it. `aside`: a worker could not run it, and left it to others. */
  readonly kind: 'due' | 'aside' | 'paused' | 'gate' | 'limit' | 'unserved' | 'next';
  readonly text: string;
  /** The queue, gate or limit that it is about; null where it is about none. */
  readonly about: string | null;
  /** Until when, where that is known (ms since the epoch). */
  readonly until: number | null;
}

/** Why a job that waits does not run. `time` writes a point in time. */
export async function waitReasons(
  mulligan: Mulligan,
  job: Job,
  ledger: readonly RunRecord[],
  time: (at: number) => string,
): Promise<WaitReason[]> {
  if (!['scheduled', 'ready', 'retrying'].includes(job.state)) return [];
  const due: WaitReason[] =
    job.state === 'ready'
      ? []
      : [{ kind: 'due', text: `It is due ${time(job.dueAt)}.`, about: null, until: job.dueAt }];
  const reasons = [
    ...due,
    ...(await asideReasons(job, ledger, time)),
    ...(await holdReasons(mulligan, job)),
    ...(await mulligan.limits.holding(job.id)).map((hold): WaitReason => {
      return { kind: 'limit', text: holdWords(hold, time), about: hold.limit, until: hold.until };
    }),
    ...unservedReasons(job, await mulligan.workers.list()),
  ];
  if (reasons.length > 0) return reasons;
  const alone = job.lane === 'suspect' ? ' Its next crash would bury it, so it waits to run alone.' : '';
  const text = `It is due and nothing holds it back: a worker that serves queue ${job.queue} and knows ${job.name} takes it next.${alone}`;
  return [{ kind: 'next', text, about: null, until: null }];
}

async function holdReasons(mulligan: Mulligan, { queue, resource }: Job): Promise<WaitReason[]> {
  const isPaused = (await mulligan.queues.list()).find((one) => one.queue === queue)?.paused;
  const paused: WaitReason = { kind: 'paused', text: `Its queue ${queue} is paused.`, about: queue, until: null };
  const reasons = isPaused ? [paused] : [];
  if (resource === null) return reasons;
  if (!isGateName(resource)) {
    return [...reasons, { kind: 'gate', text: 'Its gate ? has a name that none can have.', about: '?', until: null }];
  }
  const { gate, explanation } = await mulligan.gates.show(resource, { kind: 'resource' });
  const holds = gate.phase !== 'closed' || gate.pin !== null || gate.heldUntil !== null;
  if (!holds) return reasons;
  const text = `Its gate ${resource}: ${explanation.join(' ')}`;
  return [...reasons, { kind: 'gate', text, about: resource, until: gate.heldUntil }];
}

async function asideReasons(
  { id, name }: Job,
  ledger: readonly RunRecord[],
  time: (at: number) => string,
): Promise<WaitReason[]> {
  const last = ledger.at(-1);
  const aside = last === undefined ? null : asideAfter(last.decision);
  if (last === undefined || aside === null) return [];
  const reason = (text: string, until: number | null): WaitReason[] => [{ kind: 'aside', text, about: null, until }];
  if (aside.isRejected) {
    const before = await rejectedBefore({ runs: async () => [...ledger] }, id);
    const deadAt = (before?.since ?? last.endedAt) + parseDuration(REJECTED_PAYLOAD_TIMEOUT, 'rejectedPayloadTimeout');
    return reason(
      `Worker ${last.worker} rejected its payload, as its last error says; other workers that know ${name} try it. If none can read it, it is dead after ${time(deadAt)}, where workers have the default rejectedPayloadTimeout.`,
      deadAt,
    );
  }
  const version = aside.version > 1 ? `, version ${aside.version} or later` : '';
  return reason(
    `Worker ${last.worker} has no handler for it; it waits for a worker that knows ${name}${version}. If none comes, it is dead ${UNKNOWN_JOB_TIMEOUT} after it fell due, where workers have the default unknownJobTimeout.`,
    null,
  );
}

function unservedReasons({ queue, name }: Job, workers: readonly RegisteredWorker[]): WaitReason[] {
  const reason = (text: string): WaitReason[] => [{ kind: 'unserved', text, about: queue, until: null }];
  const alive = workers.filter((worker) => worker.alive);
  if (alive.length === 0) return reason('No worker is alive.');
  const serving = alive.filter(({ queues }) => queues.includes(queue));
  if (serving.length === 0) return reason(`No live worker serves its queue ${queue}.`);
  if (serving.some((worker) => takesJob(worker, name))) return [];
  return reason(`No live worker that serves its queue ${queue} has a handler for ${name}.`);
}
