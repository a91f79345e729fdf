import { deadReasonCodes, outcomeCodes, STATE } from '../codes.ts';

/** A count of runs or jobs: its column, and which rows of ended runs it counts. */
interface Count {
  readonly column: string;
  readonly counts: string;
}

const COMPLETED = outcomeCodes.indexOf('completed');
const finished = ['completed', 'dead', 'cancelled'] as const;

/** What is counted when runs end. */
const ofRuns: readonly Count[] = [
  ...outcomeCodes.map((outcome, code) => ({ column: outcome, counts: `outcome = ${code}` })),
  { column: 'retries', counts: 'counted AND attempt > 1' },
  { column: 'successful_retries', counts: `counted AND attempt > 1 AND outcome = ${COMPLETED}` },
  ...deadReasonCodes.map((reason, code) => ({ column: deadColumn(reason), counts: `dead_reason = ${code}` })),
  ...finished.map((state) => ({ column: `now_${state}`, counts: `state = ${STATE[state]}` })),
];

export function deadColumn(reason: string): string {
  return `dead_${reason.replace('-', '_')}`;
}

/** All columns of the table but `kind`. */
export const countColumns: readonly string[] = ['enqueued', ...ofRuns.map(({ column }) => column)];

/** Adds up a common table expression of ended runs into the table. */
export function addCounts(runs: string): string {
  const columns = ofRuns.map(({ column }) => column).join(', ');
  const sums = ofRuns.map(({ counts }) => `count(*) FILTER (WHERE ${counts})`).join(', ');
  return `INSERT INTO counts (kind, ${columns}) SELECT kind, ${sums} FROM ${runs} GROUP BY kind`;
}
