import { systemClock } from '../clock.ts';
import { isGateName } from '../gates.ts';
import { isTerminal, type Job } from '../job.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { type JobList, SCAN_ROWS } from '../store/selection.ts';
import { stateText as gateState } from './gate-facts.ts';
import { errorText, stateStyles } from './ledger.ts';
import type { Output } from './output.ts';
import { tableLines } from './table.ts';
import { fromNow } from './time.ts';

/** Jobs as a table, for `jobs list` and `dead list`; `gates` of the resources that they wait behind, by name. */
export function jobListLines(
  jobs: readonly Job[],
  output: Output,
  gates: ReadonlyMap<string, GateInfo> = new Map(),
): string[] {
  const now = systemClock.now();
  return tableLines(
    [
      { title: 'id' },
      { title: 'name', gives: 'shortened', max: 40 },
      { title: 'queue', gives: 'shortened', max: 30 },
      { title: 'state' },
      { title: 'attempts', align: 'right' },
      { title: 'when', align: 'right' },
      { title: 'last error', gives: 'shortened', max: 60 },
    ],
    jobs.map((job) => [
      job.id,
      job.name,
      job.queue,
      { text: stateText(job, gates), style: stateStyles[job.state] },
      `${job.attempts}/${job.policy.maxAttempts}`,
      fromNow(whenOf(job), now),
      job.lastError === null ? '-' : errorText(job.lastError),
    ]),
    output,
  );
}

function stateText({ state, deadReason, resource }: Job, gates: ReadonlyMap<string, GateInfo>): string {
  if (deadReason !== null) return `${state}: ${deadReason}`;
  if (state === 'running' || isTerminal(state) || resource === null) return state;
  if (!isGateName(resource)) return `${state}, gate ?`;
  const gate = gates.get(resource);
  const holds = gate !== undefined && (gate.phase !== 'closed' || gate.heldUntil !== null);
  return holds ? `${state}, gate ${gateState(gate)}` : state;
}

/** When it ended; before that, when it fell or falls due. */
function whenOf(job: Job): number {
  return isTerminal(job.state) ? (job.finishedAt ?? job.dueAt) : job.dueAt;
}

/** What to say below a page that may not be the last. */
export function pageNote(jobs: JobList, limit: number): string | null {
  if (jobs.stoppedAfter !== undefined) {
    const most = SCAN_ROWS.toLocaleString('en-US');
    return `Stopped early: a list carries 8 MiB of inputs, and a search looks at ${most} jobs. Go on with --after ${jobs.stoppedAfter}.`;
  }
  const last = jobs.at(-1);
  return last === undefined || jobs.length < limit ? null : `More may follow: --after ${last.id}`;
}
