import { isTerminal, type Settled, settledBy } from '../../job.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { keyLifeCodes, laneCodes, STATE } from './schema.ts';
import type { Session } from './session.ts';

const READ = `
  SELECT seq, state, stream, lane, runs, attempts, worker, lease_ends_at, cancel_requested, name, home_stream,
         retry_stream, key_life
  FROM jobs WHERE id = ?`;
const ALREADY = 'SELECT 1 FROM runs WHERE job = ? AND run = ? AND worker = ? AND outcome = ?';
const END = `
  UPDATE jobs SET state = ?2, attempts = ?3, crashes = crashes + ?4, finished_at = ?5, dead_reason = ?6,
    last_error = coalesce(?7, last_error), held_key = CASE WHEN ?8 THEN held_key END,
    worker = NULL, lease_ends_at = NULL, cancel_requested = 0
  WHERE seq = ?1`;
const WAIT = `
  UPDATE jobs SET state = ?2, attempts = ?3, crashes = crashes + ?4, due_at = ?5, lane = ?6,
    last_error = coalesce(?7, last_error), stream = ?8, previous_delay_ms = coalesce(?9, previous_delay_ms),
    worker = NULL, lease_ends_at = NULL
  WHERE seq = ?1`;
const LEDGER = `
  INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const PRUNED = keyLifeCodes.indexOf('pruned');

interface Row {
  readonly seq: number;
  readonly state: number;
  readonly stream: number;
  readonly lane: number;
  readonly runs: number;
  readonly attempts: number;
  readonly worker: number | null;
  readonly lease_ends_at: number | null;
  readonly cancel_requested: number;
  readonly name: number;
  readonly home_stream: number;
  readonly retry_stream: number | null;
  readonly key_life: number;
}

export function settle(session: Session, settlements: readonly Settlement[]): SettleAnswer[] {
  return settlements.map((settlement) => settleOne(session, settlement));
}

function settleOne(session: Session, settlement: Settlement): SettleAnswer {
  const row = session.sql(READ).get(settlement.id) as Row | undefined;
  const worker = session.words.find(settlement.worker);
  if (!row || worker === null) return 'stale';
  if (!holdsFence(row, settlement, worker, session.now)) {
    const already = session.sql(ALREADY).get(row.seq, settlement.run, worker, settlement.outcome);
    return already ? 'settled' : 'stale';
  }
  const settled = withCancel(settledBy(settlement.decision, laneCodes[row.lane] as Settled['lane'], session.now), row);
  writeJob(session, row, settlement, settled);
  writeLedger(session, row, settlement, settled, worker);
  countRun(session, row, settlement, settled);
  session.madeWork ||= settled.dueAt !== null && settled.dueAt <= session.now;
  return 'settled';
}

/** A crash is only believed while the lease is over: a worker that came back in time keeps its run. */
function holdsFence(row: Row, settlement: Settlement, worker: number, now: number): boolean {
  const mine = row.state === STATE.running && row.runs === settlement.run && row.worker === worker;
  if (!mine) return false;
  return settlement.outcome !== 'crashed' || (row.lease_ends_at as number) <= now;
}

/** A cancel may arrive after the decision was made; it must not be lost by the job going back to wait. */
function withCancel(settled: Settled, row: Row): Settled {
  if (row.cancel_requested === 0 || isTerminal(settled.state)) return settled;
  return { ...settled, state: 'cancelled', dueAt: null };
}

function writeJob(session: Session, row: Row, settlement: Settlement, settled: Settled): void {
  const { decision } = settlement;
  const attempts = settled.counted ? row.attempts : Math.max(0, row.attempts - 1);
  const crashes = settlement.outcome === 'crashed' ? 1 : 0;
  const error = settlement.error && JSON.stringify(settlement.error);
  if (settled.dueAt === null) {
    session
      .sql(END)
      .run(
        row.seq,
        STATE[settled.state],
        attempts,
        crashes,
        session.now,
        settled.deadReason,
        error,
        row.key_life === PRUNED ? 1 : 0,
      );
    return;
  }
  const retried = decision.kind === 'retry';
  session
    .sql(WAIT)
    .run(
      row.seq,
      STATE[settled.state],
      attempts,
      crashes,
      settled.dueAt,
      laneCodes.indexOf(settled.lane),
      error,
      retried ? (row.retry_stream ?? row.stream) : row.stream,
      retried ? decision.delayMs : null,
    );
}

function writeLedger(session: Session, row: Row, settlement: Settlement, settled: Settled, worker: number): void {
  session
    .sql(LEDGER)
    .run(
      row.seq,
      row.runs,
      row.attempts,
      settlement.outcome,
      settled.counted ? 1 : 0,
      worker,
      settlement.startedAt,
      settlement.endedAt,
      settled.dueAt,
      JSON.stringify(settlement.decision),
      settlement.error && JSON.stringify(settlement.error),
    );
}

function countRun(session: Session, row: Row, settlement: Settlement, settled: Settled): void {
  const count = (what: string): void => session.count(row.home_stream, row.name, what);
  count(`runs:${settlement.outcome}`);
  if (settled.counted && row.attempts > 1) {
    count('retries');
    if (settlement.outcome === 'completed') count('successfulRetries');
  }
  if (settled.deadReason !== null) count(`dead:${settled.deadReason}`);
  if (isTerminal(settled.state)) count(`state:${settled.state}`);
}
