import { systemClock } from '../clock.ts';
import type { Job, RunRecord } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import { asideAfter } from '../store/aside.ts';
import { pointInTime } from './time.ts';

/** Why a job that waits does not run: sentences for the person who asks. */
export async function waitReasons(mulligan: Mulligan, job: Job, ledger: readonly RunRecord[]): Promise<string[]> {
  if (!['scheduled', 'ready', 'retrying'].includes(job.state)) return [];
  const reasons: string[] = [];
  if (job.state !== 'ready')
    reasons.push(
      `It is due ${pointInTime(job.dueAt, systemClock.now())}; mulligan jobs run-now ${job.id} starts it now.`,
    );
  reasons.push(...asideReasons(job, ledger.at(-1)));
  const queues = await mulligan.queues.list();
  if (queues.find(({ queue }) => queue === job.queue)?.paused) {
    reasons.push(`Its queue ${job.queue} is paused: mulligan queues resume ${job.queue}.`);
  }
  if (job.resource !== null) {
    const { gate, explanation } = await mulligan.gates.show(job.resource, { kind: 'resource' });
    const holds = gate.phase !== 'closed' || gate.pin !== null || gate.heldUntil !== null;
    if (holds) reasons.push(`Its gate ${job.resource}: ${explanation.join(' ')}`);
  }
  if (reasons.length > 0) return reasons;
  const alone = job.lane === 'suspect' ? ' Its next crash would bury it, so it waits to run alone.' : '';
  return [
    `It is due and nothing holds it back: a worker that serves queue ${job.queue} and knows ${job.name} takes it next.${alone}`,
  ];
}

/** A worker could not run it, and left it to others. */
function asideReasons({ name }: Job, last: RunRecord | undefined): string[] {
  const aside = last === undefined ? null : asideAfter(last.decision);
  if (last === undefined || aside === null) return [];
  if (aside.isRejected) {
    return [
      `Worker ${last.worker} rejected its payload, as its last error says; other workers that know ${name} try it.`,
    ];
  }
  const version = aside.version > 1 ? `, version ${aside.version} or later` : '';
  return [`Worker ${last.worker} has no handler for it; it waits for a worker that knows ${name}${version}.`];
}
