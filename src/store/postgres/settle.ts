import { type Settled, settledBy } from '../../job.ts';
import { deadReasonCodes, outcomeCodes, STATE } from '../codes.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { plain, TextList } from './arrays.ts';
import type { Runner } from './database.ts';
import type { LineName } from './names.ts';
import type { Held, Session } from './session.ts';
import { isUuid } from './uuid.ts';

const SETTLE = `
  SELECT * FROM @.settle($1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::boolean[], $7::bigint[],
    $8::int[], $9::bigint[], $10::smallint[], $11::int[], $12::int[], $13::bigint[], $14::bigint[], $15::text[],
    $16::text[])`;
const COMPLETE = 'SELECT @.complete($1::uuid[], $2::int[], $3, $4, $5::bigint[], $6::bigint[])';
const FIND = 'SELECT id, line, kind FROM @.live WHERE id = ANY ($1::uuid[])';

/** A settlement and what it does, with times from now on. */
interface Ending {
  readonly sent: Settlement;
  readonly index: number;
  readonly settled: Settled;
}

const answers: readonly SettleAnswer[] = ['settled', 'cancelled', 'stale'];

/** `runner` carries it out inside a transaction that is under way. */
export async function settle(
  session: Session,
  settlements: readonly Settlement[],
  runner: Runner = session.db,
): Promise<SettleAnswer[]> {
  const result = new Array<SettleAnswer>(settlements.length).fill('stale');
  for (const endings of rounds(settlements)) {
    const answerAt = await send(session, endings, runner);
    for (const [position, { sent, index, settled }] of endings.entries()) {
      result[index] = answers[answerAt.get(position + 1) ?? 0] as SettleAnswer;
      session.release(sent.id);
      // Back to its old place, which claims may have passed by now.
      if (settled.state === 'ready') session.waiting.forget();
    }
  }
  return result;
}

/** A row is written once per statement, so a job that is settled twice needs a second one; nearly always there is one. */
function rounds(settlements: readonly Settlement[]): Ending[][] {
  const all: Ending[][] = [];
  const seen = new Map<string, number>();
  for (const [index, sent] of settlements.entries()) {
    if (!isUuid(sent.id)) continue;
    const round = seen.get(sent.id) ?? 0;
    seen.set(sent.id, round + 1);
    all[round] ??= [];
    all[round].push({ sent, index, settled: settledBy(sent.decision, false, 0) });
  }
  // Everybody locks rows in this order, so nobody waits in a circle.
  return all.map((endings) => endings.sort((a, b) => (a.sent.id < b.sent.id ? -1 : 1)));
}

/** What was answered, by position from 1, for those that did not simply land. */
async function send(
  session: Session,
  endings: readonly Ending[],
  runner: Runner,
): Promise<ReadonlyMap<number, number>> {
  if (await complete(session, endings, runner)) return new Map();
  const workerOf = await session.workers.find(new Set(endings.map(({ sent }) => sent.worker)));
  const lineOf = await linesAfter(session, endings);
  const errors = new TextList();
  const decisions = new TextList();
  return new Map(
    await runner.query<[at: number, answer: number]>(SETTLE, [
      plain(endings.map(({ sent }) => sent.id)),
      plain(endings.map(({ sent }) => sent.run)),
      plain(endings.map(({ sent }) => workerOf(sent.worker))),
      plain(endings.map(({ sent }) => outcomeCodes.indexOf(sent.outcome))),
      plain(endings.map(({ settled }) => STATE[settled.state])),
      plain(endings.map(({ settled }) => settled.counted)),
      plain(endings.map(({ settled }) => settled.dueAt)),
      plain(endings.map(lineOf)),
      plain(endings.map(({ sent: { decision } }) => (decision.kind === 'retry' ? decision.delayMs : null))),
      plain(endings.map(({ settled: { deadReason } }) => deadReason && deadReasonCodes.indexOf(deadReason))),
      plain(endings.map(({ sent }) => sent.error && errors.add(JSON.stringify(sent.error)))),
      plain(endings.map(({ sent }) => decisions.add(JSON.stringify(sent.decision)))),
      plain(endings.map(({ sent }) => sent.startedAt)),
      plain(endings.map(({ sent }) => sent.endedAt)),
      errors.literal,
      decisions.literal,
    ]),
  );
}

/** False when they are not all completions of one worker, or some did not land: the long way answers for each. */
async function complete(session: Session, endings: readonly Ending[], runner: Runner): Promise<boolean> {
  const first = endings[0]?.sent;
  if (!first || !endings.every(({ sent }) => sent.decision.kind === 'complete' && isLike(sent, first))) return false;
  const workerOf = await session.workers.find([first.worker]);
  const [row] = await runner.query<[landed: string | null]>(COMPLETE, [
    plain(endings.map(({ sent }) => sent.id)),
    plain(endings.map(({ sent }) => sent.run)),
    workerOf(first.worker),
    JSON.stringify(first.decision),
    plain(endings.map(({ sent }) => sent.startedAt)),
    plain(endings.map(({ sent }) => sent.endedAt)),
  ]);
  return (row as [string | null])[0] === null;
}

function isLike(sent: Settlement, first: Settlement): boolean {
  return sent.worker === first.worker && sent.outcome === 'completed' && sent.decision.rule === first.decision.rule;
}

/** Where each job waits after it is settled; null for one that ends. */
async function linesAfter(session: Session, endings: readonly Ending[]): Promise<(ending: Ending) => number | null> {
  const waiting = endings.filter(({ settled }) => settled.dueAt !== null);
  if (waiting.length === 0) return () => null;
  const all = await findHeld(session, waiting);
  const next = new Map<string, LineName>();
  for (const { sent, settled } of waiting) {
    const held = all.get(sent.id);
    // It is gone, so the settlement is stale, wherever it would wait.
    if (held !== undefined) next.set(sent.id, nextLine(session, sent, settled, held));
  }
  const idOf = await session.lines.intern(next.values());
  return ({ sent }) => {
    const line = next.get(sent.id);
    return line === undefined ? null : idOf(line);
  };
}

function nextLine(session: Session, { decision }: Settlement, { lane }: Settled, held: Held): LineName {
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
    const held = session.held(sent.id);
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
