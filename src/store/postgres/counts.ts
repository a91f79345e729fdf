import { deadReasons } from '../../retry/decision.ts';
import { outcomeKinds } from '../../retry/outcome.ts';
import { OUTCOME, STATE } from '../codes.ts';

/** How SQL says what is known of an ended run: by a column, or by a value that all of them share. */
export interface EndedRun {
  readonly worker: string;
  readonly outcome: string;
  readonly state: string;
  readonly counted: string;
  readonly deadReason: string;
  readonly error: string;
  readonly decision: string;
}

/** By columns of these names. */
export const asStored: EndedRun = {
  worker: 'worker',
  outcome: 'outcome',
  state: 'state',
  counted: 'counted',
  deadReason: 'dead_reason',
  error: 'error',
  decision: 'decision',
};

/** A count of runs or jobs: its column, and which ended runs it counts. */
interface Count {
  readonly column: string;
  counts(run: EndedRun): string;
}

const COMPLETED = OUTCOME.completed;
const finished = ['completed', 'dead', 'cancelled'] as const;

/** What is counted when runs end. */
const ofRuns: readonly Count[] = [
  ...outcomeKinds.map((outcome, code) => ({
    column: outcome,
    counts: (run: EndedRun) => `${run.outcome} = ${code}`,
  })),
  { column: 'retries', counts: ({ counted }) => `${counted} AND attempt > 1` },
  {
    column: 'successful_retries',
    counts: ({ counted, outcome }) => `${counted} AND attempt > 1 AND ${outcome} = ${COMPLETED}`,
  },
  ...deadReasons.map((reason, code) => ({
    column: deadColumn(reason),
    counts: (run: EndedRun) => `${run.deadReason} = ${code}`,
  })),
  ...finished.map((state) => ({
    column: `now_${state}`,
    counts: (run: EndedRun) => `${run.state} = ${STATE[state]}`,
  })),
];

export function deadColumn(reason: string): string {
  return `dead_${reason.replace('-', '_')}`;
}

/** All columns of the table but `job_type`. */
export const countColumns: readonly string[] = ['enqueued', ...ofRuns.map(({ column }) => column)];

/** Adds up a common table expression of ended runs into the table. */
export function addCounts(runs: string, run: EndedRun): string {
  const columns = ofRuns.map(({ column }) => column).join(', ');
  const sums = ofRuns.map(({ counts }) => `count(*) FILTER (WHERE ${counts(run)})`).join(', ');
  return `INSERT INTO counts (job_type, ${columns}) SELECT job_type, ${sums} FROM ${runs} GROUP BY job_type`;
}
