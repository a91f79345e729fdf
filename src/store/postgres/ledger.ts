import { type Decision, deadReasons } from '../../retry/decision.ts';
import { type OutcomeKind, outcomeKinds, type StoredError } from '../../retry/outcome.ts';
import { STATE } from '../codes.ts';
import {
  type LedgerJob,
  type LedgerPage,
  type LedgerRequest,
  type LedgerRun,
  nextPosition,
  PolicyList,
  positionAfter,
} from '../ledger.ts';
import { plain } from './connection/arrays.ts';
import type { Session } from './session.ts';

/*
 * Plain reads of `finished`, `runs` and `errors`, whose rows do not change once they are written: they take no lock that a
 * worker waits for, and nothing of `live` is read. In order they follow the index of finished jobs. A draw reads pages of
 * the table that TABLESAMPLE chooses, so that it costs the same however long the ledger is.
 */

const COLUMNS = `id, job_type, state, dead_reason, finished_at, seq, runs, outcome, attempt, counted, failed, started_at,
  ended_at, decision, fingerprint, last_error, resource`;
/** The number of the page that the row is on. */
const PAGE = "split_part(ltrim(f.ctid::text, '('), ',', 1)::bigint";
const IN_ORDER = `
  SELECT NULL, ${COLUMNS} FROM @.finished
  WHERE state = $1 AND finished_at >= $2 AND (finished_at, seq) > ($2, $3) ORDER BY finished_at, seq LIMIT $4`;
const DRAWN = `
  SELECT ${PAGE}, ${COLUMNS} FROM @.finished f TABLESAMPLE SYSTEM ($1::float8) REPEATABLE ($2::float8)
  WHERE state IN (${STATE.completed}, ${STATE.dead}) AND finished_at <= $3`;
/** How many rows there are, as last estimated, and pages. A table that was never analysed has no estimate. */
const SIZE = `
  SELECT greatest(reltuples, 0)::float8, (pg_relation_size(oid) / current_setting('block_size')::int)::float8
  FROM pg_class WHERE oid = '@.finished'::regclass`;
/** All runs but the last, which the row of an ended job holds. */
const EARLIER_RUNS = `
  SELECT job, run, attempt, outcome, counted, started_at, ended_at, decision, error
  FROM @.runs WHERE job = ANY ($1::uuid[]) ORDER BY job, run`;
/** Only the fingerprint leaves the database: the text of an error is long. */
const FINGERPRINTS = "SELECT id, error::json ->> 'fingerprint' FROM @.errors WHERE id = ANY ($1::bigint[])";
const ERRORS = 'SELECT id, error FROM @.errors WHERE id = ANY ($1::bigint[])';

const LATEST = Number.MAX_SAFE_INTEGER;

type EndedRow = [
  part: number | null,
  id: string,
  jobType: number,
  state: number,
  deadReason: number | null,
  finishedAt: number,
  seq: number,
  runs: number,
  outcome: number | null,
  attempt: number,
  counted: boolean,
  failed: boolean,
  startedAt: number,
  endedAt: number,
  decision: string,
  fingerprint: string | null,
  lastError: number | null,
  resource: string,
];

type RunRow = [
  job: string,
  run: number,
  attempt: number,
  outcome: number,
  counted: boolean,
  startedAt: number,
  endedAt: number,
  decision: string,
  error: number | null,
];

export async function ledger(session: Session, request: LedgerRequest): Promise<LedgerPage> {
  return request.draw === undefined ? inOrder(session, request) : drawn(session, request, request.draw);
}

async function inOrder(session: Session, request: LedgerRequest): Promise<LedgerPage> {
  const from = positionAfter(request);
  if (from === null) return toPage(session, [], request, null);
  const { state, finishedAt, accepted } = from;
  const rows = await session.db.read<EndedRow>(IN_ORDER, [STATE[state], finishedAt, accepted, request.limit]);
  const last = rows.at(-1);
  const position = last && { finishedAt: last[5], accepted: last[6] };
  return toPage(session, rows, request, nextPosition(request, state, rows.length, position));
}

async function drawn(session: Session, request: LedgerRequest, draw: number): Promise<LedgerPage> {
  const [size] = await session.db.read<[rows: number, pages: number]>(SIZE);
  const [rows, pages] = size as [number, number];
  // A page holds a row at least, so that no stale estimate makes a draw read more pages than it may look at jobs.
  const percent = Math.min(100, (100 * request.limit) / Math.max(1, rows, pages));
  return toPage(
    session,
    await session.db.read<EndedRow>(DRAWN, [percent, draw, request.until ?? LATEST]),
    request,
    null,
  );
}

async function toPage(
  session: Session,
  looked: readonly EndedRow[],
  { since, name }: LedgerRequest,
  next: string | null,
): Promise<LedgerPage> {
  const typeOf = await session.jobTypes.load(looked.map((row) => row[2]));
  const rows = looked.filter((row) => row[5] >= since && (name === undefined || typeOf(row[2]).name === name));
  const earlier = await earlierRuns(session, rows);
  const fingerprints = await fingerprintsOf(session, [...earlier.values()].flat());
  const policies = new PolicyList();
  const samples = new Map<string, number>();
  for (const [error, fingerprint] of fingerprints) samples.set(fingerprint, error);
  const jobs = rows.map((row): LedgerJob => {
    const [part, id, jobType, state, deadReason, finishedAt] = row;
    const { name, policy } = typeOf(jobType);
    if (row[11] && row[15] !== null && row[16] !== null) samples.set(row[15], row[16]);
    const runs = (earlier.get(id) ?? []).map((run) => toRun(run, fingerprints));
    return {
      id,
      name,
      state: state === STATE.completed ? 'completed' : 'dead',
      deadReason: deadReason === null ? null : (deadReasons[deadReason] as LedgerJob['deadReason']),
      resource: row[17] || null,
      finishedAt,
      policy: policies.indexOf(policy),
      part,
      runs: row[8] === null ? runs : [...runs, lastRun(row)],
    };
  });
  const [now] = await session.db.read<[now: number]>('SELECT @.now_ms()');
  return {
    now: (now as [number])[0],
    jobs,
    looked: looked.length,
    policies: policies.policies,
    errors: await errorsOf(session, samples),
    next,
  };
}

async function earlierRuns(session: Session, rows: readonly EndedRow[]): Promise<Map<string, RunRow[]>> {
  // One that ended while it waited has none of its runs in its own row.
  const ids = rows.filter((row) => row[7] > (row[8] === null ? 0 : 1)).map((row) => row[1]);
  if (ids.length === 0) return new Map();
  return Map.groupBy(await session.db.read<RunRow>(EARLIER_RUNS, [plain(ids)]), ([job]) => job);
}

async function fingerprintsOf(session: Session, runs: readonly RunRow[]): Promise<Map<number, string>> {
  const ids = [...new Set(runs.flatMap((run) => run[8] ?? []))];
  if (ids.length === 0) return new Map();
  const rows = await session.db.read<[id: number, fingerprint: string | null]>(FINGERPRINTS, [plain(ids)]);
  return new Map(rows.flatMap(([id, fingerprint]) => (fingerprint === null ? [] : [[id, fingerprint] as const])));
}

async function errorsOf(session: Session, samples: ReadonlyMap<string, number>): Promise<LedgerPage['errors']> {
  if (samples.size === 0) return {};
  const texts = new Map(
    await session.db.read<[id: number, error: string]>(ERRORS, [plain([...new Set(samples.values())])]),
  );
  return Object.fromEntries(
    [...samples].flatMap(([fingerprint, id]) => {
      const text = texts.get(id);
      return text === undefined ? [] : [[fingerprint, { ...(JSON.parse(text) as StoredError), stack: null }]];
    }),
  );
}

function toRun(row: RunRow, fingerprints: ReadonlyMap<number, string>): LedgerRun {
  const [, run, attempt, outcome, counted, startedAt, endedAt, decision, error] = row;
  return {
    run,
    attempt,
    outcome: outcomeKinds[outcome] as OutcomeKind,
    counted,
    startedAt,
    endedAt,
    decision: JSON.parse(decision) as Decision,
    fingerprint: error === null ? null : (fingerprints.get(error) ?? null),
  };
}

function lastRun(row: EndedRow): LedgerRun {
  const [, , , , , , , run, outcome, attempt, counted, failed, startedAt, endedAt, decision, fingerprint] = row;
  return {
    run,
    attempt,
    outcome: outcomeKinds[outcome ?? 0] as OutcomeKind,
    counted,
    startedAt,
    endedAt,
    decision: JSON.parse(decision) as Decision,
    fingerprint: failed ? fingerprint : null,
  };
}
