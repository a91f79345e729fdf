import { isTerminal, type Settled, settledBy } from '../../job.ts';
import { KEY_LIFE, LANE, STATE } from '../codes.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { type PackedAnswers, type PackedSettlement, packAnswers, unpackSettlement } from './packed-settlements.ts';
import type { HeldRow, Session } from './session.ts';

/*
 * The fence is in the WHERE of the write itself: whoever no longer holds the run changes no row. A crash is only
 * believed while the lease is over (?5 is the time for a crash, null otherwise): a worker that came back in time
 * keeps its run.
 */
const FENCE = `
  seq = ?1 AND id = ?2 AND state = ${STATE.running} AND runs = ?3 AND worker = ?4
  AND (?5 IS NULL OR lease_ends_at <= ?5)`;
const END = `
  UPDATE jobs SET state = ?7, attempts = max(0, attempts - ?6), crashes = crashes + ?8, finished_at = ?9,
    dead_reason = ?10, last_error = coalesce(?11, last_error),
    held_key = CASE key_life WHEN ${KEY_LIFE.pruned} THEN held_key END,
    worker = NULL, lease_ends_at = NULL, cancel_requested = 0
  WHERE ${FENCE}`;
/* A job handed back for now keeps its place in the line. */
const WAIT = `
  UPDATE jobs SET state = ?7, attempts = max(0, attempts - ?6), crashes = crashes + ?8,
    due_at = CASE ?7 WHEN ${STATE.ready} THEN due_at ELSE ?9 END,
    lane = coalesce(?10, lane), last_error = coalesce(?11, last_error),
    stream = CASE WHEN ?12 IS NULL THEN stream ELSE coalesce(retry_stream, stream) END,
    previous_delay_ms = coalesce(?12, previous_delay_ms),
    available_at = CASE ?13 WHEN 1 THEN ?9 ELSE available_at END,
    first_started_at = CASE WHEN ?13 = 0 AND first_started_at = claimed_at THEN NULL ELSE first_started_at END,
    worker = NULL, lease_ends_at = NULL
  WHERE ${FENCE} AND cancel_requested = 0`;
const FIND = 'SELECT seq, attempts AS attempt, home_stream AS homeStream, name FROM jobs WHERE id = ?';
const ALREADY = 'SELECT 1 FROM runs WHERE job = ? AND run = ? AND worker = ? AND outcome = ?';
const LEDGER = `
  INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export function settle(session: Session, settlements: readonly PackedSettlement[]): PackedAnswers {
  return packAnswers(settlements.map((packed) => settleOne(session, unpackSettlement(packed))));
}

function settleOne(session: Session, settlement: Settlement): SettleAnswer {
  const { id, run, outcome, decision } = settlement;
  const worker = session.words.find(settlement.worker);
  const row = session.inHand.take(id, run) ?? (session.sql(FIND).get(id) as HeldRow | undefined);
  if (worker === null || row === undefined) return 'stale';
  const ending: Ending = {
    settlement,
    row,
    worker,
    error: settlement.error && session.errors.number(settlement.error),
  };
  let settled = settledBy(decision, false, session.now);
  let landed = writeJob(session, ending, settled);
  if (!landed && settled.dueAt !== null) {
    // Perhaps only because a cancel has come in meanwhile.
    settled = settledBy(decision, true, session.now);
    landed = writeJob(session, ending, settled);
  }
  if (!landed)
    return outcome !== 'crashed' && session.sql(ALREADY).get(row.seq, run, worker, outcome) ? 'settled' : 'stale';
  writeLedger(session, ending, settled);
  countRun(session, ending, settled);
  session.madeWork ||= settled.dueAt !== null && settled.dueAt <= session.now;
  return settled.overruled ? 'cancelled' : 'settled';
}

interface Ending {
  readonly settlement: Settlement;
  readonly row: HeldRow;
  readonly worker: number;
  /** Its number. */
  readonly error: number | null;
}

/** False when the fence did not hold. */
function writeJob(session: Session, { settlement, row, worker, error }: Ending, settled: Settled): boolean {
  const { id, run, outcome, decision } = settlement;
  const crashed = outcome === 'crashed';
  const overBy = crashed ? session.now : null;
  const givenBack = settled.counted ? 0 : 1;
  const state = STATE[settled.state];
  const crashes = crashed ? 1 : 0;
  if (settled.dueAt === null) {
    const { now } = session;
    const { changes } = session
      .sql(END)
      .run(row.seq, id, run, worker, overBy, givenBack, state, crashes, now, settled.deadReason, error);
    return changes === 1;
  }
  const lane = settled.lane && LANE[settled.lane];
  const delayMs = decision.kind === 'retry' ? decision.delayMs : null;
  const ran = settled.ran ? 1 : 0;
  const { changes } = session
    .sql(WAIT)
    .run(row.seq, id, run, worker, overBy, givenBack, state, crashes, settled.dueAt, lane, error, delayMs, ran);
  return changes === 1;
}

function writeLedger(session: Session, { settlement, row, worker, error }: Ending, settled: Settled): void {
  const { run, outcome, startedAt, endedAt, decision } = settlement;
  const counted = settled.counted ? 1 : 0;
  const text = session.decisionText.of(decision);
  if (settlement.error !== null) session.errors.use(settlement.error);
  session
    .sql(LEDGER)
    .run(row.seq, run, row.attempt, outcome, counted, worker, startedAt, endedAt, settled.dueAt, text, error);
}

function countRun(session: Session, { settlement, row }: Ending, settled: Settled): void {
  const count = (what: string): void => session.count(row.homeStream, row.name, what);
  count(`runs:${settlement.outcome}`);
  if (settled.counted && row.attempt > 1) {
    count('retries');
    if (settlement.outcome === 'completed') count('successfulRetries');
  }
  if (settled.deadReason !== null) count(`dead:${settled.deadReason}`);
  if (isTerminal(settled.state)) count(`state:${settled.state}`);
}
