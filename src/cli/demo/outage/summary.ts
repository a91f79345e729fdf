import type { Output } from '../../output.ts';
import { type Cell, tableLines } from '../../table.ts';
import { span } from '../../time.ts';
import { attemptsOf, inState, number } from './figures.ts';
import type { SideFigures } from './side.ts';
import type { Picture } from './view.ts';

export interface SideSummary {
  readonly jobs: number;
  readonly completed: number;
  readonly dead: number;
  /** Attempts that all jobs together have spent. */
  readonly attempts: number;
  readonly calls: number;
  readonly callsWhileOff: number;
  readonly firstSuccessAfterMs: number | null;
  /** Between the return of the service and the end of the last job. */
  readonly recoveryMs: number;
}

export interface OutageSummary {
  readonly outageMs: number;
  readonly ungated: SideSummary;
  readonly gated: SideSummary;
}

export function summarise({ ungated, gated }: Picture, outageMs: number, backAt: number): OutageSummary {
  return { outageMs, ungated: sumUp(ungated, backAt), gated: sumUp(gated, backAt) };
}

function sumUp(figures: SideFigures, backAt: number): SideSummary {
  const { jobs, callsPerSecond, callsWhileOff } = figures;
  const ends = jobs.map(({ finishedAt }) => finishedAt ?? backAt);
  const successes = jobs.filter(({ state }) => state === 'completed').map(({ finishedAt }) => finishedAt ?? 0);
  const first = Math.min(...successes.filter((at) => at >= backAt));
  return {
    jobs: jobs.length,
    completed: inState(figures, 'completed'),
    dead: inState(figures, 'dead'),
    attempts: attemptsOf(figures),
    calls: callsPerSecond.reduce((sum, count) => sum + count, 0),
    callsWhileOff,
    firstSuccessAfterMs: Number.isFinite(first) ? first - backAt : null,
    recoveryMs: Math.max(0, ...ends.map((at) => at - backAt)),
  };
}

export function summaryLines({ outageMs, ungated, gated }: OutageSummary, output: Output): string[] {
  const after = (ms: number | null): string => (ms === null ? 'never' : `after ${span(ms)}`);
  const row = (title: string, value: (side: SideSummary) => string): Cell[] => [title, value(ungated), value(gated)];
  const rows = [
    row('calls to the dead service', ({ callsWhileOff }) => number(callsWhileOff)),
    row('jobs dead', ({ dead, jobs }) => `${number(dead)} of ${number(jobs)}`),
    row('jobs completed', ({ completed }) => number(completed)),
    row('attempts spent', ({ attempts }) => number(attempts)),
    row('first success after its return', ({ firstSuccessAfterMs }) => after(firstSuccessAfterMs)),
    row('every job had ended', ({ recoveryMs }) => after(recoveryMs)),
  ];
  return [
    '',
    output.paint('bold', `The service was down for ${span(outageMs)}.`),
    '',
    ...tableLines(
      [{ title: '' }, { title: 'resource: false', align: 'right' }, { title: "resource: 'service'", align: 'right' }],
      rows,
      output,
    ),
    '',
    ...verdict(ungated),
  ];
}

function verdict({ dead }: SideSummary): string[] {
  const left = `Without a gate, ${dead === 0 ? 'every job survived this short outage' : `${number(dead)} good jobs are dead and wait for a redrive by hand`}.`;
  return [
    left,
    'Behind a gate, the jobs waited, spent no attempts on the outage, and started again at a rising rate.',
    'With nothing set, the name of a job is a soft gate: an outage costs no attempts, but each job goes on calling, up to once a minute.',
    '',
  ];
}

/** The demo checks itself. */
export function unexpected({ ungated, gated }: OutageSummary): string[] {
  const all: readonly [string, boolean][] = [
    [`${gated.dead} jobs behind the gate are dead instead of none`, gated.dead > 0],
    [`${gated.completed} of ${gated.jobs} jobs behind the gate completed`, gated.completed !== gated.jobs],
    [
      `the dead service got ${gated.callsWhileOff} calls with a gate and ${ungated.callsWhileOff} without`,
      gated.callsWhileOff >= ungated.callsWhileOff,
    ],
  ];
  return all.filter(([, isWrong]) => isWrong).map(([text]) => text);
}
