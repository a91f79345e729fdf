import type { Decision } from '../../retry/decision.ts';
import { STATE } from '../codes.ts';
import type { Settlement } from '../store.ts';
import { KEY_AFTER_END } from './keys.ts';
import type { RunningRow } from './running.ts';
import type { Session } from './session.ts';

/*
 * Runs that completed: nearly all settlements are of this kind. They are written several to a statement, and the run is kept in
 * the row of its job and not in `runs`: the row has most of it already. So a job that succeeds at once leaves a single row, as on
 * PostgreSQL.
 */

/** The only decision that is not stored: a completion with a note, or by another rule, has a row in `runs`. */
const DECISION = { kind: 'complete', rule: 'completed' } as const satisfies Decision;

/** So many runs go with one statement. */
const TOGETHER = 16;
/** Exported for a test that asks SQLite how it carries it out. */
export const COMPLETE_MANY: string = completeSql(TOGETHER);
const COMPLETE_ONE = completeSql(1);

/**
 * The fence is in the condition, as in settle.ts. Answers the jobs that it has ended. NOT INDEXED makes SQLite look jobs up by their
 * number: after an ANALYZE while no job ran it would walk over all that run, once per statement.
 */
function completeSql(runs: number): string {
  const given = new Array(runs).fill('(?, ?, ?, ?, ?, ?, ?, ?, ?)').join(', ');
  return `
    WITH g (seq, id, run, worker, started_at, ended_at, result, progress, now) AS (VALUES ${given})
    UPDATE jobs NOT INDEXED SET state = ${STATE.completed}, finished_at = g.now, held_key = ${KEY_AFTER_END},
      worker = NULL, lease_ends_at = NULL, cancel_requested = 0, result = g.result, progress = coalesce(g.progress, jobs.progress),
      run_worker = g.worker, run_started_at = g.started_at, run_ended_at = g.ended_at
    FROM g
    WHERE jobs.seq = g.seq AND jobs.id = g.id AND jobs.state = ${STATE.running} AND jobs.runs = g.run AND jobs.worker = g.worker
    RETURNING seq`;
}

/** SQL: the runs of the job ?1 that have ended, with the columns of `runs`. */
export const RUNS_OF_JOB: string = `
  SELECT run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error, settled_at FROM runs WHERE job = ?1
  UNION ALL
  SELECT runs, attempts, 'completed', 1, run_worker, run_started_at, run_ended_at, NULL, '${JSON.stringify(DECISION)}', NULL, NULL
  FROM jobs WHERE seq = ?1 AND run_ended_at IS NOT NULL`;

/** A run that a worker reports as ended. */
export interface Ending {
  readonly settlement: Settlement;
  readonly row: RunningRow;
  /** Its number. */
  readonly worker: number;
}

/** Whether nothing of the run would be lost without a row in `runs`. */
export function isPlainCompletion({ outcome, decision, refund, error }: Settlement): boolean {
  const { kind, rule, note } = decision;
  const isUsual = kind === DECISION.kind && rule === DECISION.rule && note === undefined;
  return isUsual && outcome === 'completed' && refund === undefined && error === null;
}

/** Completes the jobs of these runs, of which no two have the same job. Answers the numbers of those that it has ended. */
export function complete(session: Session, runs: readonly Ending[]): Set<number> {
  const ended = new Set<number>();
  for (let at = 0; at < runs.length; ) {
    const together = runs.length - at >= TOGETHER ? TOGETHER : 1;
    const values: (string | number | null)[] = [];
    for (const { settlement, row, worker } of runs.slice(at, at + together)) {
      const { id, run, startedAt, endedAt, result = null, progress = null } = settlement;
      values.push(row.seq, id, run, worker, startedAt, endedAt, result, progress, session.now);
    }
    const rows = session.arrays(together === 1 ? COMPLETE_ONE : COMPLETE_MANY).all(...values);
    for (const [seq] of rows as unknown as [number][]) ended.add(seq);
    at += together;
  }
  return ended;
}
