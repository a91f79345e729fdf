import { isTerminal, type Lane, lanes, type Settled, settledBy } from '../../job.ts';
import { asideAfter } from '../../retry/decision.ts';
import { LANE, STATE } from '../codes.ts';
import { errorChanges, failureOf } from '../error-groups.ts';
import type { Refund, SettleAnswer, Settlement } from '../store.ts';
import { enterAside } from './aside.ts';
import { complete, type Ending, isPlainCompletion } from './complete.ts';
import { KEY_AFTER_END } from './keys.ts';
import { settleSlots } from './limit-slots.ts';
import { keepLog } from './log.ts';
import { type PackedAnswers, type PackedSettlement, packAnswers, unpackSettlement } from './packed-settlements.ts';
import { react } from './reactions.ts';
import type { RunningRow } from './running.ts';
import type { Session } from './session.ts';

/*
 * The fence is in the WHERE of the write itself: a worker that no longer holds the run changes no row. A crash only
 * counts while the lease is over (?5 is the time for a crash, null otherwise): a worker that came back in time keeps
 * its run.
 */
const FENCE = `
  seq = ?1 AND id = ?2 AND state = ${STATE.running} AND runs = ?3 AND worker = ?4
  AND (?5 IS NULL OR lease_ends_at <= ?5)`;
/** `also`: of a job that fails with another kind of error than before, its fingerprint, which an index has. */
const end = (also: string): string => `
  UPDATE jobs SET state = ?7, attempts = max(0, attempts - ?6), crashes = crashes + ?8, finished_at = ?9,
    dead_reason = ?10, last_error = coalesce(?11, last_error),
    held_key = ${KEY_AFTER_END},
    worker = NULL, lease_ends_at = NULL, cancel_requested = 0, run_now_at = NULL,
    result = ?12, progress = coalesce(?13, progress)${also}
  WHERE ${FENCE}`;
/* A job that is handed back at once keeps its due time, and so its place among those that wait. */
const wait = (also: string): string => `
  UPDATE jobs SET state = ?7, attempts = max(0, attempts - ?6), crashes = crashes + ?8,
    due_at = CASE ?7 WHEN ${STATE.ready} THEN due_at ELSE ?9 END,
    partition = ?10, queue = ?14, lane = ?15, last_error = coalesce(?11, last_error),
    previous_delay_ms = coalesce(?12, previous_delay_ms),
    available_at = CASE ?13 WHEN 1 THEN ?9 ELSE available_at END,
    first_started_at = CASE WHEN ?13 = 0 AND first_started_at = claimed_at THEN NULL ELSE first_started_at END,
    given_back = given_back + (?17 IN ('released', 'deferred')),
    deferred_since = CASE ?17 WHEN 'deferred' THEN coalesce(deferred_since, ?18) WHEN 'snoozed' THEN NULL ELSE deferred_since END,
    snoozes = CASE ?17 WHEN 'released' THEN snoozes WHEN 'snoozed' THEN snoozes + 1 ELSE 0 END,
    worker = NULL, lease_ends_at = NULL, run_now_at = NULL, progress = coalesce(?16, progress)${also}
  WHERE ${FENCE} AND cancel_requested = 0`;
const END = end('');
const END_FAILED = end(', fingerprint = ?14');
const WAIT = wait('');
const WAIT_FAILED = wait(', fingerprint = ?19');
const FIND = `
  SELECT seq, attempts AS attempt, name, home_queue AS homeQueue, retry_queue AS retryQueue, queue, lane, priority, resource,
    fingerprint, limits
  FROM jobs WHERE id = ?`;
const RUN_NOW_AT = 'SELECT run_now_at AS at FROM jobs WHERE seq = ? AND run_now_at >= claimed_at';
const SPENT = 'UPDATE jobs SET spent_at = ?2, spent_count = ?3 WHERE seq = ?1';
const ALREADY = `
  SELECT 1 FROM runs WHERE job = ?1 AND run = ?2 AND worker = ?3 AND outcome = ?4
  UNION ALL
  SELECT 1 FROM jobs WHERE seq = ?1 AND runs = ?2 AND run_worker = ?3 AND 'completed' = ?4`;
const LEDGER = `
  INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error, settled_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export function settle(session: Session, packed: readonly PackedSettlement[]): PackedAnswers {
  const settlements = packed.map(unpackSettlement);
  const completed = completeAll(session, settlements);
  return packAnswers(
    settlements.map((settlement) => (completed.has(settlement) ? 'settled' : settleOne(session, settlement))),
  );
}

/**
 * Settles the runs that completed, as far as the fence lets it, ahead of the others. It leaves jobs with several settlements, whose
 * order matters. What it leaves, `settleOne` answers.
 */
function completeAll(session: Session, settlements: readonly Settlement[]): ReadonlySet<Settlement> {
  const runs = new Map<number, Ending>();
  const repeated = repeatedIds(settlements);
  for (const settlement of settlements) {
    if (!isPlainCompletion(settlement) || repeated.has(settlement.id)) continue;
    const run = runOf(session, settlement);
    if (run !== null) runs.set(run.row.seq, run);
  }
  const ended = [...complete(session, [...runs.values()])].map((seq) => runs.get(seq) as Ending);
  for (const run of ended) record(session, run, settledBy(run.settlement.decision, false, session.now));
  return new Set(ended.map(({ settlement }) => settlement));
}

function repeatedIds(settlements: readonly Settlement[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const { id } of settlements) (seen.has(id) ? repeated : seen).add(id);
  return repeated;
}

/** Null when no job has the id, or no run the worker. */
function runOf(session: Session, settlement: Settlement): Ending | null {
  const { id, run } = settlement;
  const worker = session.strings.find(settlement.worker);
  const row = session.running.take(id, run) ?? (session.sql(FIND).get(id) as RunningRow | undefined);
  return worker === null || row === undefined ? null : { settlement, row, worker };
}

function settleOne(session: Session, settlement: Settlement): SettleAnswer {
  const { run, outcome, decision } = settlement;
  const found = runOf(session, settlement);
  if (found === null) return 'stale';
  const { row, worker } = found;
  const ending = { ...found, error: settlement.error && session.errors.number(settlement.error) };
  let settled = settledBy(decision, false, session.now);
  if (settled.dueAt !== null) settled = settledBy(decision, false, session.now, runNowAt(session, row.seq));
  let applied = writeJob(session, ending, settled);
  if (!applied && settled.dueAt !== null) {
    // Perhaps only because a cancel has come in meanwhile.
    settled = settledBy(decision, true, session.now);
    applied = writeJob(session, ending, settled);
  }
  if (!applied)
    return outcome !== 'crashed' && session.sql(ALREADY).get(row.seq, run, worker, outcome) ? 'settled' : 'stale';
  if (settlement.refund !== undefined) writeSpent(session, row.seq, settlement.refund);
  writeLedger(session, ending, settled);
  record(session, ending, settled);
  if (settled.deadReason !== null) react(session, row.seq, settlement);
  session.madeWork ||= settled.dueAt !== null && settled.dueAt <= session.now;
  return settled.overruled ? 'cancelled' : 'settled';
}

/** When the job is to run again, as was said while this run was under way. */
function runNowAt(session: Session, seq: number): number | null {
  return (session.sql(RUN_NOW_AT).get(seq) as { at: number } | undefined)?.at ?? null;
}

/** What follows from a run that has ended, once its job is written. */
function record(session: Session, ending: Ending, settled: Settled): void {
  const { settlement, row } = ending;
  if (settlement.log !== undefined) keepLog(session, row.seq, settlement.run, settlement.log);
  countRun(session, ending, settled);
  countErrors(session, ending, settled);
  if (row.limits !== null) settleSlots(session, { ...row, limits: row.limits, lane: laneAfter(row, settled) }, settled);
}

interface EndingWithError extends Ending {
  /** Its number. */
  readonly error: number | null;
}

/** False when the fence did not hold. */
function writeJob(session: Session, { settlement, row, worker, error }: EndingWithError, settled: Settled): boolean {
  const { id, run, outcome, decision } = settlement;
  const crashed = outcome === 'crashed';
  const overBy = crashed ? session.now : null;
  const givenBack = (settled.counted ? 0 : 1) + (settlement.refund?.attempts ?? 0);
  const state = STATE[settled.state];
  const crashes = crashed ? 1 : 0;
  const { progress = null } = settlement;
  const failure = failureOf(settlement);
  const isNewKind = failure !== null && failure !== row.fingerprint;
  const failed = isNewKind ? [failure] : [];
  if (settled.dueAt === null) {
    const { now } = session;
    const result = settled.state === 'completed' ? (settlement.result ?? null) : null;
    const values = [row.seq, id, run, worker, overBy, givenBack, state, crashes];
    values.push(now, settled.deadReason, error, result, progress, ...failed);
    return session.sql(isNewKind ? END_FAILED : END).run(...values).changes === 1;
  }
  const { dueAt } = settled;
  const lane = laneAfter(row, settled);
  const queue = settled.state === 'retrying' ? (row.retryQueue ?? row.queue) : row.queue;
  const delayMs = settled.state === 'retrying' && 'delayMs' in decision ? decision.delayMs : null;
  const ran = settled.ran ? 1 : 0;
  const aside = asideAfter(decision);
  const within = aside === null ? queue : enterAside(session, queue, row.name, aside);
  const partition = session.partitions.enter({ ...row, queue: within, lane }, dueAt);
  const values = [row.seq, id, run, worker, overBy, givenBack, state, crashes];
  values.push(dueAt, partition, error, delayMs, ran, queue, lane, progress, outcome, session.now, ...failed);
  const { changes } = session.sql(isNewKind ? WAIT_FAILED : WAIT).run(...values);
  if (changes !== 1) session.partitions.leave(partition);
  return changes === 1;
}

function laneAfter({ lane }: RunningRow, settled: Settled): number {
  return settled.lane === null ? lane : LANE[settled.lane];
}

function writeSpent(session: Session, seq: number, { spent }: Refund): void {
  session.sql(SPENT).run(seq, spent && Math.round(spent.at), spent?.count ?? null);
}

function writeLedger(session: Session, { settlement, row, worker, error }: EndingWithError, settled: Settled): void {
  const { run, outcome, startedAt, endedAt, decision, refund } = settlement;
  const attempt = row.attempt - (refund?.attempts ?? 0);
  const counted = settled.counted ? 1 : 0;
  const text = session.decisionText.of(decision);
  if (settlement.error !== null) session.errors.use(settlement.error);
  const values = [row.seq, run, attempt, outcome, counted, worker, startedAt, endedAt, settled.dueAt, text, error];
  // A run that completed is found by the end of its job, so that it costs no entry in an index.
  session.sql(LEDGER).run(...values, settled.state === 'completed' ? null : session.now);
}

function countErrors(session: Session, { settlement, row }: Ending, settled: Settled): void {
  const failure = failureOf(settlement);
  if (failure === null && row.fingerprint === null) return;
  const { fingerprint } = row;
  const attempt = row.attempt - (settlement.refund?.attempts ?? 0);
  const ran = { fingerprint, lane: lanes[row.lane] as Lane, attempt };
  session.errorCounts.add(row, errorChanges(ran, failure, settled));
  if (failure === null || settlement.error === null) return;
  session.errorCounts.sample(failure, settlement.id, settlement.error);
}

function countRun(session: Session, { settlement, row }: Ending, settled: Settled): void {
  const count = (what: string): void => session.count(row.homeQueue, row.name, what);
  count(`runs:${settlement.outcome}`);
  if (settled.counted && row.attempt > 1) {
    count('retries');
    if (settlement.outcome === 'completed') count('successfulRetries');
  }
  if (settled.deadReason !== null) count(`dead:${settled.deadReason}`);
  if (isTerminal(settled.state)) count(`state:${settled.state}`);
}
