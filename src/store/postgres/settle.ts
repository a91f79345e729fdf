import { ConfigError } from '../../errors.ts';
import { type Settled, settledBy } from '../../job.ts';
import type { Decision } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { DEAD_REASON, OUTCOME, STATE } from '../codes.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { plain, TextList } from './connection/arrays.ts';
import type { Runner } from './connection/database.ts';
import type { LineName } from './names.ts';
import type { Held, Session } from './session.ts';
import { isUuid } from './uuid.ts';

const SETTLE = `
  SELECT * FROM @.settle($1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::boolean[], $7::bigint[],
    $8::int[], $9::bigint[], $10::smallint[], $11::int[], $12::int[], $13::bigint[], $14::bigint[], $15::text[],
    $16::text[], $17::bigint[])`;
const COMPLETE = 'SELECT @.complete($1::uuid[], $2::int[], $3, $4, $5::bigint[], $6::bigint[], $7::bigint[])';
const PLACES = 'SELECT line, due_at, seq FROM @.live WHERE id = ANY ($1::uuid[]) AND worker IS NULL';
const FIND = 'SELECT id, line, kind FROM @.live WHERE id = ANY ($1::uuid[])';

/** A settlement, and its place among those that were given. */
interface Ending {
  readonly sent: Settlement;
  readonly index: number;
}

/** One with what it does, with times from now on. */
interface Effect extends Ending {
  readonly settled: Settled;
}

const answers: readonly SettleAnswer[] = ['settled', 'cancelled', 'stale'];

export async function settle(session: Session, settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
  const result = await settleThrough(session, settlements, session.db);
  for (const [index, { id, run }] of settlements.entries()) if (result[index] !== 'stale') session.release(id, run);
  return result;
}

/** As part of a transaction, perhaps: what it answers holds once that is committed. */
export async function settleThrough(
  session: Session,
  settlements: readonly Settlement[],
  runner: Runner,
): Promise<SettleAnswer[]> {
  const result = new Array<SettleAnswer>(settlements.length).fill('stale');
  for (const endings of rounds(settlements)) {
    const { short, long } = ways(endings);
    await Promise.all([complete(session, short, result, runner), settleEach(session, long, result, runner)]);
  }
  return result;
}

/**
 * By id, because everybody locks rows in this order, so nobody waits in a circle. A row is written once per statement,
 * so a job that is settled twice needs a second round; nearly always there is one.
 */
function rounds(settlements: readonly Settlement[]): Ending[][] {
  const sorted = settlements
    .map((sent, index): Ending => ({ sent, index }))
    .filter(({ sent }) => isUuid(sent.id))
    .sort((a, b) => (a.sent.id < b.sent.id ? -1 : a.sent.id > b.sent.id ? 1 : 0));
  const all: Ending[][] = [];
  let round = 0;
  let before: string | null = null;
  for (const ending of sorted) {
    round = ending.sent.id === before ? round + 1 : 0;
    before = ending.sent.id;
    const endings = all[round] ?? [];
    all[round] = endings;
    endings.push(ending);
  }
  return all;
}

/** Nearly all are completions by one worker, and have a short way. */
function ways(endings: readonly Ending[]): { short: readonly Ending[]; long: readonly Ending[] } {
  const first = endings.find(({ sent }) => sent.decision.kind === 'complete')?.sent;
  if (first === undefined) return { short: [], long: endings };
  const isShort = ({ sent }: Ending): boolean =>
    sent.outcome === 'completed' && sent.decision.rule === first.decision.rule && sent.worker === first.worker;
  const short = endings.filter(isShort);
  return { short, long: short.length === endings.length ? [] : endings.filter((ending) => !isShort(ending)) };
}

async function complete(
  session: Session,
  endings: readonly Ending[],
  result: SettleAnswer[],
  runner: Runner,
): Promise<void> {
  const first = endings[0]?.sent;
  if (first === undefined) return;
  const workerOf = await session.workers.find([first.worker]);
  const [row] = await runner.query<[all: boolean]>(COMPLETE + runner.onlyWithin, [
    plain(endings.map(({ sent }) => sent.id)),
    plain(endings.map(({ sent }) => sent.run)),
    workerOf(first.worker),
    JSON.stringify(first.decision),
    plain(endings.map(({ sent }) => sent.startedAt)),
    plain(endings.map(({ sent }) => sent.endedAt)),
    plain(session.endedLeases()),
  ]);
  if (row === undefined) {
    throw new ConfigError(
      'transaction: expected it to be open still when the work was done, but the work has ended it (COMMIT, ROLLBACK); the job is not completed. Leave its end to Mulligan, and throw to roll back.',
    );
  }
  if (row[0]) for (const { index } of endings) result[index] = 'settled';
  // The long way answers for each, and does nothing twice.
  else await settleEach(session, endings, result, runner);
}

async function settleEach(
  session: Session,
  endings: readonly Ending[],
  result: SettleAnswer[],
  runner: Runner,
): Promise<void> {
  if (endings.length === 0) return;
  const effects = endings.map((ending): Effect => ({ ...ending, settled: settledBy(ending.sent.decision, false, 0) }));
  // By position from 1, for those that did not simply land.
  const answerAt = new Map(await send(session, effects, runner));
  for (const [position, { index }] of effects.entries()) {
    result[index] = answers[answerAt.get(position + 1) ?? 0] as SettleAnswer;
  }
  // These are where they stood before, and claims may have passed that place by now.
  const putBack = effects.filter(({ settled }) => settled.state === 'ready');
  if (putBack.length === 0) return;
  const places = await runner.query<[line: number, dueAt: number, seq: number]>(PLACES, [
    plain(putBack.map(({ sent }) => sent.id)),
  ]);
  for (const [line, dueAt, seq] of places) session.reading.putBack(line, { dueAt, seq });
}

async function send(
  session: Session,
  effects: readonly Effect[],
  runner: Runner,
): Promise<[position: number, answer: number][]> {
  const workerOf = await session.workers.find(new Set(effects.map(({ sent }) => sent.worker)));
  const lines = await linesAfter(session, effects);
  const errors = new TextList<StoredError>();
  const decisions = new TextList<Decision>();
  return runner.query(SETTLE, [
    plain(effects.map(({ sent }) => sent.id)),
    plain(effects.map(({ sent }) => sent.run)),
    plain(effects.map(({ sent }) => workerOf(sent.worker))),
    plain(effects.map(({ sent }) => OUTCOME[sent.outcome])),
    plain(effects.map(({ settled }) => STATE[settled.state])),
    plain(effects.map(({ settled }) => settled.counted)),
    plain(effects.map(({ settled }) => settled.dueAt)),
    plain(lines),
    plain(effects.map(({ sent: { decision } }) => (decision.kind === 'retry' ? decision.delayMs : null))),
    plain(effects.map(({ settled: { deadReason } }) => deadReason && DEAD_REASON[deadReason])),
    plain(effects.map(({ sent }) => sent.error && errors.add(sent.error))),
    plain(effects.map(({ sent }) => decisions.add(sent.decision))),
    plain(effects.map(({ sent }) => sent.startedAt)),
    plain(effects.map(({ sent }) => sent.endedAt)),
    errors.literal,
    decisions.literal,
    plain(session.endedLeases()),
  ]);
}

/** Where each job waits after it is settled; null for one that ends. */
async function linesAfter(session: Session, effects: readonly Effect[]): Promise<(number | null)[]> {
  const waiting = effects.filter(({ settled }) => settled.dueAt !== null);
  if (waiting.length === 0) return effects.map(() => null);
  const places = await findHeld(session, waiting);
  // Many come from the same line and go to the same one.
  const next = new Map<string, LineName>();
  const moves = effects.map((effect): string | null => {
    const held = places.get(effect.sent.id);
    // It ends; or it is gone, so the settlement is stale, wherever it would wait.
    if (held === undefined) return null;
    const move = `${held.line} ${held.kind} ${effect.settled.lane} ${effect.sent.decision.kind}`;
    if (!next.has(move)) next.set(move, nextLine(session, effect, held));
    return move;
  });
  const idOf = await session.lines.intern(next.values());
  const ids = new Map([...next].map(([move, line]) => [move, idOf(line)]));
  return moves.map((move) => (move === null ? null : (ids.get(move) as number)));
}

function nextLine(session: Session, { sent: { decision }, settled: { lane } }: Effect, held: Held): LineName {
  const from = session.lines.get(held.line);
  const { retryQueue } = session.kinds.get(held.kind);
  const queue = decision.kind === 'retry' ? (retryQueue ?? from.queue) : from.queue;
  return { queue, resource: from.resource, lane: lane ?? from.lane, priority: from.priority };
}

/**
 * What these jobs are and where they wait: as remembered, or looked up for those that were claimed elsewhere. Kept apart
 * from what the session remembers: another settlement of the same job may make it forget meanwhile.
 */
async function findHeld(session: Session, endings: readonly Ending[]): Promise<ReadonlyMap<string, Held>> {
  const found = new Map<string, Held>();
  const unknown: string[] = [];
  for (const { sent } of endings) {
    const held = session.held(sent.id, sent.run);
    if (held === undefined) unknown.push(sent.id);
    else found.set(sent.id, held);
  }
  if (unknown.length === 0) return found;
  const rows = await session.db.query<[id: string, line: number, kind: number]>(FIND, [plain(unknown)]);
  await session.lines.know(rows.map(([, line]) => line));
  await session.kinds.know(rows.map(([, , kind]) => kind));
  for (const [id, line, kind] of rows) found.set(id, { line, kind });
  return found;
}
