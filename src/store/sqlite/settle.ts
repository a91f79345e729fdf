import { isTerminal, type Settled, settledBy } from '../../job.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { keyLifeCodes, laneCodes, STATE } from './schema.ts';
import type { Session } from './session.ts';

/*
 * The fence is in the WHERE of the write itself: whoever no longer holds the run changes no row. A crash is only
 * believed while the lease is over (?4 is the time for a crash, null otherwise): a worker that came back in time
 * keeps its run.
 */
const FENCE = `
  id = ?1 AND state = ${STATE.running} AND runs = ?2 AND worker = ?3 AND (?4 IS NULL OR lease_ends_at <= ?4)`;
const SETTLED_COLUMNS = 'seq, attempts + ?5 AS attempt, home_stream, name';
const END = `
  UPDATE jobs SET state = ?6, attempts = max(0, attempts - ?5), crashes = crashes + ?7, finished_at = ?8,
    dead_reason = ?9, last_error = coalesce(?10, last_error),
    held_key = CASE key_life WHEN ${keyLifeCodes.indexOf('pruned')} THEN held_key END,
    worker = NULL, lease_ends_at = NULL, cancel_requested = 0
  WHERE ${FENCE}
  RETURNING ${SETTLED_COLUMNS}`;
/* A job handed back for now keeps its place in the line. */
const WAIT = `
  UPDATE jobs SET state = ?6, attempts = max(0, attempts - ?5), crashes = crashes + ?7,
    due_at = CASE ?6 WHEN ${STATE.ready} THEN due_at ELSE ?8 END,
    lane = coalesce(?9, lane), last_error = coalesce(?10, last_error),
    stream = CASE WHEN ?11 IS NULL THEN stream ELSE coalesce(retry_stream, stream) END,
    previous_delay_ms = coalesce(?11, previous_delay_ms), worker = NULL, lease_ends_at = NULL
  WHERE ${FENCE} AND cancel_requested = 0
  RETURNING ${SETTLED_COLUMNS}`;
const ALREADY = `
  SELECT 1 FROM runs
  WHERE job = (SELECT seq FROM jobs WHERE id = ?) AND run = ? AND worker = ? AND outcome = ?`;
const LEDGER = `
  INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** `attempt`: attempts before one may have been given back. */
type SettledRow = readonly [seq: number, attempt: number, homeStream: number, name: number];

export function settle(session: Session, settlements: readonly Settlement[]): SettleAnswer[] {
  return settlements.map((settlement) => settleOne(session, settlement));
}

function settleOne(session: Session, settlement: Settlement): SettleAnswer {
  const worker = session.words.find(settlement.worker);
  if (worker === null) return 'stale';
  const error = settlement.error && JSON.stringify(settlement.error);
  let settled = settledBy(settlement.decision, false, session.now);
  let row = writeJob(session, settlement, settled, worker, error);
  if (row === undefined && settled.dueAt !== null) {
    // Perhaps only because a cancel has come in meanwhile.
    settled = settledBy(settlement.decision, true, session.now);
    row = writeJob(session, settlement, settled, worker, error);
  }
  if (row === undefined) {
    const already = session.sql(ALREADY).get(settlement.id, settlement.run, worker, settlement.outcome);
    return already ? 'settled' : 'stale';
  }
  writeLedger(session, row, settlement, settled, worker, error);
  countRun(session, row, settlement, settled);
  session.madeWork ||= settled.dueAt !== null && settled.dueAt <= session.now;
  return 'settled';
}

function writeJob(
  session: Session,
  { id, run, outcome, decision }: Settlement,
  settled: Settled,
  worker: number,
  error: string | null,
): SettledRow | undefined {
  const crashed = outcome === 'crashed';
  const overBy = crashed ? session.now : null;
  const givenBack = settled.counted ? 0 : 1;
  const state = STATE[settled.state];
  const crashes = crashed ? 1 : 0;
  if (settled.dueAt === null) {
    const row = session
      .arrays(END)
      .get(id, run, worker, overBy, givenBack, state, crashes, session.now, settled.deadReason, error);
    return row as unknown as SettledRow | undefined;
  }
  const lane = settled.lane && laneCodes.indexOf(settled.lane);
  const delayMs = decision.kind === 'retry' ? decision.delayMs : null;
  const row = session
    .arrays(WAIT)
    .get(id, run, worker, overBy, givenBack, state, crashes, settled.dueAt, lane, error, delayMs);
  return row as unknown as SettledRow | undefined;
}

function writeLedger(
  session: Session,
  row: SettledRow,
  settlement: Settlement,
  settled: Settled,
  worker: number,
  error: string | null,
): void {
  const [seq, attempt] = row;
  const { run, outcome, startedAt, endedAt, decision } = settlement;
  session
    .sql(LEDGER)
    .run(
      seq,
      run,
      attempt,
      outcome,
      settled.counted ? 1 : 0,
      worker,
      startedAt,
      endedAt,
      settled.dueAt,
      session.decisionText.of(decision),
      error,
    );
}

function countRun(session: Session, row: SettledRow, settlement: Settlement, settled: Settled): void {
  const [, attempt, homeStream, name] = row;
  const count = (what: string): void => session.count(homeStream, name, what);
  count(`runs:${settlement.outcome}`);
  if (settled.counted && attempt > 1) {
    count('retries');
    if (settlement.outcome === 'completed') count('successfulRetries');
  }
  if (settled.deadReason !== null) count(`dead:${settled.deadReason}`);
  if (isTerminal(settled.state)) count(`state:${settled.state}`);
}
