import { systemClock } from '../clock.ts';
import type { Job, RunRecord } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import { waitReasons as reasonsOf, type WaitReason } from '../observe/wait-reasons.ts';
import { pointInTime } from './time.ts';

/** Why a job that waits does not run, with the command that changes it. */
export async function waitReasons(mulligan: Mulligan, job: Job, ledger: readonly RunRecord[]): Promise<string[]> {
  const time = (at: number): string => pointInTime(at, systemClock.now());
  const reasons = await reasonsOf(mulligan, job, ledger, time);
  const isHeld = reasons.some(({ kind }) => kind === 'paused' || kind === 'gate');
  return reasons.map((reason) => withCommand(reason, job, isHeld));
}

function withCommand({ kind, text, about }: WaitReason, { id, limits }: Job, isHeld: boolean): string {
  switch (kind) {
    case 'paused':
      return `${text.slice(0, -1)}: mulligan queues resume ${about}.`;
    case 'unserved':
      return `${text} See mulligan workers list.`;
    case 'due':
      // A pause or a gate would keep it waiting when it is due, and so may a limit.
      if (isHeld) return text;
      return `${text.slice(0, -1)}; mulligan jobs run-now ${id} ${limits.length === 0 ? 'starts it' : 'makes it due'} now.`;
    default:
      return text;
  }
}
