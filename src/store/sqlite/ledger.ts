import type { DeadReason, Decision } from '../../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../../retry/outcome.ts';
import { STATE } from '../codes.ts';
import {
  DRAWN_TOGETHER,
  drawParts,
  type LedgerJob,
  type LedgerPage,
  type LedgerRequest,
  type LedgerRun,
  nextPosition,
  PolicyList,
  positionAfter,
} from '../ledger.ts';
import { RUNS_OF_JOB } from './complete.ts';
import type { Session } from './session.ts';

const COLUMNS = 'seq, id, name, state, dead_reason, resource, finished_at, policy';
const ENDED = `finished_at IS NOT NULL AND state IN (${STATE.completed}, ${STATE.dead})`;
/** By the index of finished jobs; the state is no parameter, so that the index serves. */
const inState = (state: number): string => `
  SELECT ${COLUMNS} FROM jobs
  WHERE state = ${state} AND finished_at IS NOT NULL AND finished_at >= :at AND (finished_at, seq) > (:at, :seq)
  ORDER BY finished_at, seq LIMIT :limit`;
const IN_ORDER = { completed: inState(STATE.completed), dead: inState(STATE.dead) };
const PART = `SELECT ${COLUMNS} FROM jobs WHERE seq BETWEEN ? AND ? AND ${ENDED} AND finished_at <= ?`;
const RANGE = 'SELECT min(seq) AS first, max(seq) AS last FROM jobs';
const RUNS = `
  SELECT run, attempt, outcome, counted, started_at, ended_at, decision, error AS error_id,
    (SELECT e.error ->> '$.fingerprint' FROM errors e WHERE e.id = r.error) AS fingerprint
  FROM (${RUNS_OF_JOB}) r ORDER BY run`;
const ERROR = 'SELECT error FROM errors WHERE id = ?';

const LATEST = Number.MAX_SAFE_INTEGER;

interface EndedRow {
  readonly seq: number;
  readonly id: string;
  readonly name: number;
  readonly state: number;
  readonly dead_reason: string | null;
  readonly resource: number;
  readonly finished_at: number;
  readonly policy: number;
}

interface RunRow {
  readonly run: number;
  readonly attempt: number;
  readonly outcome: string;
  readonly counted: number;
  readonly started_at: number;
  readonly ended_at: number;
  readonly decision: string;
  readonly error_id: number | null;
  readonly fingerprint: string | null;
}

type Looked = readonly { readonly row: EndedRow; readonly part: number | null }[];

export function ledger(session: Session, request: LedgerRequest): LedgerPage {
  return request.draw === undefined
    ? inOrder(session, request)
    : toPage(session, draw(session, request), request, null);
}

function inOrder(session: Session, request: LedgerRequest): LedgerPage {
  const from = positionAfter(request);
  if (from === null) return toPage(session, [], request, null);
  const bound = { at: from.finishedAt, seq: from.accepted, limit: request.limit };
  const rows = session.sql(IN_ORDER[from.state]).all(bound) as unknown as EndedRow[];
  const last = rows.at(-1);
  const position = last && { finishedAt: last.finished_at, accepted: last.seq };
  const looked = rows.map((row) => ({ row, part: null }));
  return toPage(session, looked, request, nextPosition(request, from.state, rows.length, position));
}

/** Ranges of the order of acceptance, wherever they lie: where jobs were deleted, or have not ended, a range gives fewer. */
function draw(session: Session, { draw = 0, until = LATEST, limit }: LedgerRequest): Looked {
  const { first, last } = session.sql(RANGE).get() as { first: number | null; last: number | null };
  if (first === null || last === null) return [];
  const count = Math.ceil((last - first + 1) / DRAWN_TOGETHER);
  return drawParts(draw, Math.ceil(limit / DRAWN_TOGETHER), count).flatMap((part) => {
    const from = first + part * DRAWN_TOGETHER;
    const rows = session.sql(PART).all(from, from + DRAWN_TOGETHER - 1, until) as unknown as EndedRow[];
    return rows.map((row) => ({ row, part }));
  });
}

function toPage(session: Session, looked: Looked, { since, name }: LedgerRequest, next: string | null): LedgerPage {
  const policies = new PolicyList();
  const errors: Record<string, StoredError> = {};
  const wanted = looked.filter(
    ({ row }) => row.finished_at >= since && (name === undefined || session.strings.text(row.name) === name),
  );
  const jobs = wanted.map(({ row, part }): LedgerJob => {
    const runs = session.sql(RUNS).all(row.seq) as unknown as RunRow[];
    for (const { fingerprint, error_id } of runs) {
      if (fingerprint !== null && error_id !== null) errors[fingerprint] ??= errorOf(session, error_id);
    }
    return {
      id: row.id,
      name: session.strings.text(row.name),
      state: row.state === STATE.completed ? 'completed' : 'dead',
      deadReason: row.dead_reason as DeadReason | null,
      resource: row.resource === 0 ? null : session.strings.text(row.resource),
      finishedAt: row.finished_at,
      policy: policies.indexOf(session.policy(row.policy).policy),
      part,
      runs: runs.map(toRun),
    };
  });
  return { now: session.now, jobs, looked: looked.length, policies: policies.policies, errors, next };
}

function toRun(row: RunRow): LedgerRun {
  return {
    run: row.run,
    attempt: row.attempt,
    outcome: row.outcome as OutcomeKind,
    counted: row.counted === 1,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    decision: JSON.parse(row.decision) as Decision,
    fingerprint: row.fingerprint,
  };
}

function errorOf(session: Session, id: number): StoredError {
  const { error } = session.sql(ERROR).get(id) as { error: string };
  return { ...(JSON.parse(error) as StoredError), stack: null };
}
