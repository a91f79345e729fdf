import { ConfigError } from '../../errors.ts';
import { type Settled, settledBy } from '../../job.ts';
import { parseLimits } from '../../limit/limit.ts';
import { asideAfter, type Decision } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { DEAD_REASON, OUTCOME, STATE } from '../codes.ts';
import { failureOf } from '../error-groups.ts';
import { reactionTo } from '../reaction.ts';
import type { Reaction, SettleAnswer, Settlement } from '../store.ts';
import { plain, TextList, texts } from './connection/arrays.ts';
import type { Runner } from './connection/database.ts';
import { ENQUEUE_ARGUMENTS, enqueueWith } from './enqueue.ts';
import type { HeldJob } from './leases.ts';
import { keyedOf, type Partition, type PartitionIdentity, partitionIn } from './partitions.ts';
import type { Session } from './session.ts';
import { isUuid } from './uuid.ts';

const SETTLE_TYPES = [
  ...['uuid', 'uuid[]', 'int[]', 'int[]', 'smallint[]', 'smallint[]', 'boolean[]', 'bigint[]', 'bigint[]', 'bigint[]'],
  ...['smallint[]', 'int[]', 'int[]', 'bigint[]', 'bigint[]', 'text[]', 'text[]', 'bigint[]', 'bigint[]', 'int[]'],
  ...['bigint[]', 'int[]', 'text[]', 'text[]', 'text[]', 'uuid[]', 'text[]', 'text[]', 'int[]', 'text[]'],
];
/** After so many other ones. */
const settleArguments = (before: number): string =>
  SETTLE_TYPES.map((type, index) => `$${before + index + 1}::${type}`).join(', ');
const SETTLE = `SELECT * FROM @.settle(${settleArguments(0)})`;
const BURY = `SELECT * FROM @.bury(${ENQUEUE_ARGUMENTS}, ${settleArguments(ENQUEUE_ARGUMENTS.split(',').length)})`;
const REACTIONS = 'SELECT job, reaction FROM @.reactions WHERE job = ANY ($1::uuid[])';
const COMPLETE = `
  SELECT * FROM @.complete($1, $2::uuid[], $3::int[], $4, $5, $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
    $11::uuid[], $12::text[], $13::text[], $14::int[], $15::text[])`;
const PLACES = 'SELECT partition, due_at, seq FROM @.live WHERE id = ANY ($1::uuid[]) AND worker IS NULL';
const FIND = 'SELECT id, partition, job_type, limits FROM @.live WHERE id = ANY ($1::uuid[])';

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

/** What became of settlements. */
interface Result {
  readonly answers: SettleAnswer[];
  /** Jobs may start now that could not before: behind limits, because they were to run now, or because they react to a death. */
  madeRoom: boolean;
}

export async function settle(session: Session, settlements: readonly Settlement[]): Promise<Readonly<Result>> {
  const result = await settleThrough(session, settlements, session.db);
  for (const [index, { id, run }] of settlements.entries())
    if (result.answers[index] !== 'stale') session.leases.release(id, run);
  return result;
}

/** As part of a transaction, perhaps: what it answers holds once that is committed. */
export async function settleThrough(
  session: Session,
  settlements: readonly Settlement[],
  runner: Runner,
): Promise<Readonly<Result>> {
  const result: Result = { answers: new Array<SettleAnswer>(settlements.length).fill('stale'), madeRoom: false };
  for (const endings of rounds(settlements)) {
    const { completions, others } = split(endings);
    await Promise.all([complete(session, completions, result, runner), settleEach(session, others, result, runner)]);
  }
  return result;
}

/**
 * By id, because every statement locks rows in this order, so that no two wait for each other. A row is written once per
 * statement, so a job that is settled twice needs a second round; nearly always there is one.
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

/** Nearly all are completions by one worker, which a shorter function settles. */
function split(endings: readonly Ending[]): { completions: readonly Ending[]; others: readonly Ending[] } {
  const first = endings.find(({ sent }) => sent.decision.kind === 'complete')?.sent;
  if (first === undefined) return { completions: [], others: endings };
  const isAlike = ({ sent }: Ending): boolean =>
    sent.outcome === 'completed' &&
    !(sent.refund && sent.refund.attempts > 0) &&
    sent.decision.rule === first.decision.rule &&
    sent.decision.note === first.decision.note &&
    sent.worker === first.worker;
  const completions = endings.filter(isAlike);
  return {
    completions,
    others: completions.length === endings.length ? [] : endings.filter((ending) => !isAlike(ending)),
  };
}

type CompleteRow = [areAll: boolean, madeRoom: boolean];

async function complete(session: Session, endings: readonly Ending[], result: Result, runner: Runner): Promise<void> {
  const first = endings[0]?.sent;
  if (first === undefined) return;
  let row: CompleteRow | undefined;
  try {
    row = await sendCompletions(session, endings, first, runner);
  } catch (error) {
    if (!(error instanceof ConfigError) || runner !== session.db) throw error;
    return settleEach(session, endings, result, runner);
  }
  if (row === undefined) {
    throw new ConfigError(
      'transaction: expected it to be open still when the work was done, but the work has ended it (COMMIT, ROLLBACK); the job is not completed. Leave its end to Mulligan, and throw to roll back.',
    );
  }
  result.madeRoom ||= row[1];
  if (row[0]) for (const { index } of endings) result.answers[index] = 'settled';
  // The longer function answers for each, and does nothing twice.
  else await settleEach(session, endings, result, runner);
}

async function sendCompletions(
  session: Session,
  endings: readonly Ending[],
  { worker, decision }: Settlement,
  runner: Runner,
): Promise<CompleteRow | undefined> {
  const workerOf = await session.workers.find([worker]);
  const [row] = await runner.query<CompleteRow>(COMPLETE + runner.onlyWithin, [
    session.identity,
    plain(endings.map(({ sent }) => sent.id)),
    plain(endings.map(({ sent }) => sent.run)),
    workerOf(worker),
    JSON.stringify(decision),
    plain(endings.map(({ sent }) => sent.startedAt)),
    plain(endings.map(({ sent }) => sent.endedAt)),
    plain(session.leases.takeEnded()),
    ...leftOf(endings),
    ...limitsOf(endings, await findHeld(session, endings)),
    ...logsOf(endings),
  ]);
  return row;
}

async function settleEach(session: Session, endings: readonly Ending[], result: Result, runner: Runner): Promise<void> {
  const reactions = await reactionsOf(session, endings);
  if (reactions.size === 0) return settleTogether(session, endings, result, runner);
  await settleTogether(
    session,
    endings.filter(({ sent }) => !reactions.has(sent.id)),
    result,
    runner,
  );
  for (const ending of endings) {
    const reaction = reactions.get(ending.sent.id);
    if (reaction !== undefined) await bury(session, ending, reaction, result);
  }
}

/** Of the jobs that die. */
async function reactionsOf(session: Session, endings: readonly Ending[]): Promise<ReadonlyMap<string, Reaction>> {
  const dying = endings.filter(({ sent: { decision } }) => decision.kind === 'dead').map(({ sent: { id } }) => id);
  if (dying.length === 0) return new Map();
  const rows = await session.db.query<[job: string, reaction: string]>(REACTIONS, [plain(dying)]);
  return new Map(rows.map(([job, reaction]) => [job, JSON.parse(reaction) as Reaction]));
}

/** One by one: a settlement that is stale must not store its reaction. */
async function bury(session: Session, { sent, index }: Ending, reaction: Reaction, result: Result): Promise<void> {
  const effect = { sent, index, settled: settledBy(sent.decision, false, 0) };
  const workerOf = await session.workers.find([sent.worker]);
  const held = await findHeld(session, [effect]);
  const values = settleValues(session, [effect], [null], held, workerOf);
  const rows = await enqueueWith(session, [reactionTo(sent, reaction)], async (enqueued) => {
    const answered = await session.db.query<[position: number, answer: number]>(BURY, [...enqueued, ...values]);
    return answered.some(([position]) => position === 0) ? null : answered;
  });
  const [, answer = 0] = rows.find(([position]) => position > 0) ?? [];
  result.answers[index] = answers[answer] as SettleAnswer;
  // The reaction is due.
  result.madeRoom ||= answer === 0;
}

async function settleTogether(
  session: Session,
  endings: readonly Ending[],
  result: Result,
  runner: Runner,
): Promise<void> {
  if (endings.length === 0) return;
  const effects = endings.map((ending): Effect => ({ ...ending, settled: settledBy(ending.sent.decision, false, 0) }));
  // By position from 1, for those that were not simply applied.
  const answerAt = new Map<number, number>();
  try {
    for (const [position, answer] of await send(session, effects, runner)) {
      if (position < 0) result.madeRoom = true;
      else answerAt.set(position, answer);
    }
  } catch (error) {
    // One row has a value that the database cannot store. It must not keep the others from being settled.
    if (!(error instanceof ConfigError) || endings.length === 1 || runner !== session.db) throw error;
    const middle = Math.ceil(endings.length / 2);
    const halves = [endings.slice(0, middle), endings.slice(middle)];
    const settled = await Promise.allSettled(halves.map((half) => settleTogether(session, half, result, runner)));
    for (const half of settled) if (half.status === 'rejected') throw half.reason;
    return;
  }
  for (const [position, { index }] of effects.entries()) {
    result.answers[index] = answers[answerAt.get(position + 1) ?? 0] as SettleAnswer;
  }
  // These are where they stood before, and claims may have passed that place by now.
  const putBack = effects.filter(({ settled }) => settled.state === 'ready');
  if (putBack.length === 0) return;
  const places = await runner.query<[partition: number, dueAt: number, seq: number]>(PLACES, [
    plain(putBack.map(({ sent }) => sent.id)),
  ]);
  for (const [partition, dueAt, seq] of places) session.cursors.rewind(partition, dueAt, seq);
}

async function send(
  session: Session,
  effects: readonly Effect[],
  runner: Runner,
): Promise<[position: number, answer: number][]> {
  const workerOf = await session.workers.find(new Set(effects.map(({ sent }) => sent.worker)));
  const held = await findHeld(session, effects);
  const { wanted, indexes } = partitionsAfter(effects, held);
  return session.partitions.use(wanted, async (interned) => {
    const nextOf = new Map(indexes.map((index, position) => [index, interned[position] as Partition]));
    // One that is neither ending nor found is gone: the settlement is stale, wherever the job would wait.
    const partitions = effects.map(({ index }) => nextOf.get(index) ?? null);
    const values = settleValues(session, effects, partitions, held, workerOf);
    const rows = await runner.query<[position: number, answer: number]>(SETTLE, values);
    return rows.some(([position]) => position === 0) ? null : rows;
  });
}

function settleValues(
  session: Session,
  effects: readonly Effect[],
  partitions: readonly (Partition | null)[],
  held: ReadonlyMap<string, HeldJob>,
  workerOf: (worker: string) => number | null,
): unknown[] {
  const errors = new TextList<StoredError>();
  const decisions = new TextList<Decision>();
  const fingerprints: (string | null)[] = [];
  const addError = (sent: Settlement): number | null => {
    if (sent.error === null) return null;
    const position = errors.add(sent.error);
    fingerprints[position - 1] ??= failureOf(sent);
    return position;
  };
  return [
    session.identity,
    plain(effects.map(({ sent }) => sent.id)),
    plain(effects.map(({ sent }) => sent.run)),
    plain(effects.map(({ sent }) => workerOf(sent.worker))),
    plain(effects.map(({ sent }) => OUTCOME[sent.outcome])),
    plain(effects.map(({ settled }) => STATE[settled.state])),
    plain(effects.map(({ settled }) => settled.counted)),
    plain(effects.map(({ settled }) => settled.dueAt)),
    plain(partitions.map((partition) => partition?.id ?? null)),
    plain(effects.map(({ sent: { decision } }) => (isAgain(decision) ? decision.delayMs : null))),
    plain(effects.map(({ settled: { deadReason } }) => deadReason && DEAD_REASON[deadReason])),
    plain(effects.map(({ sent }) => addError(sent))),
    plain(effects.map(({ sent }) => decisions.add(sent.decision))),
    plain(effects.map(({ sent }) => sent.startedAt)),
    plain(effects.map(({ sent }) => sent.endedAt)),
    errors.literal,
    decisions.literal,
    plain(session.leases.takeEnded()),
    keyedOf(partitions),
    ...refundsOf(effects),
    texts(fingerprints),
    ...leftOf(effects),
    ...limitsOf(effects, held),
    ...logsOf(effects),
  ];
}

/** Results, and progress that is not stored. Usually there is none, and nothing is sent. */
function leftOf(endings: readonly Ending[]): (string | null)[] {
  const column = (field: 'result' | 'progress'): string | null =>
    endings.every(({ sent }) => sent[field] === undefined)
      ? null
      : texts(endings.map(({ sent }) => sent[field] ?? null));
  return [column('result'), column('progress')];
}

/** What runs logged, and their positions from 1. Usually nothing, and nothing is sent. */
function logsOf(endings: readonly Ending[]): (string | null)[] {
  if (endings.every(({ sent }) => sent.log === undefined)) return [null, null];
  const logs = endings.flatMap(({ sent: { log } }, index) => (log === undefined ? [] : { position: index + 1, log }));
  return [plain(logs.map(({ position }) => position)), texts(logs.map(({ log }) => log))];
}

/** The jobs that have limits, once for each, and the limits' names and keys. */
function limitsOf(endings: readonly Ending[], held: ReadonlyMap<string, HeldJob>): string[] {
  const limited = endings.flatMap(({ sent: { id } }) => (held.get(id)?.limits ?? []).map((one) => ({ id, ...one })));
  return [
    plain(limited.map(({ id }) => id)),
    texts(limited.map(({ limit }) => limit)),
    texts(limited.map(({ key }) => key)),
  ];
}

/** What gates make of the attempts; usually nothing, and nothing is sent. */
function refundsOf(effects: readonly Effect[]): (string | null)[] {
  if (effects.every(({ sent }) => sent.refund === undefined)) return [null, null, null];
  return [
    plain(effects.map(({ sent }) => sent.refund?.attempts ?? null)),
    plain(effects.map(({ sent }) => sent.refund?.spent?.at ?? null)),
    plain(effects.map(({ sent }) => sent.refund?.spent?.count ?? null)),
  ];
}

/** The job waits as a retry, counted or not. */
function isAgain(decision: Decision): decision is Extract<Decision, { kind: 'retry' | 'defer' }> {
  return decision.kind === 'retry' || decision.kind === 'defer';
}

/** Where the jobs that do not end wait afterwards, and their places among the settlements. */
function partitionsAfter(
  effects: readonly Effect[],
  held: ReadonlyMap<string, HeldJob>,
): { wanted: PartitionIdentity[]; indexes: number[] } {
  const moving = effects.filter(({ sent: { id }, settled }) => settled.dueAt !== null && held.has(id));
  return {
    wanted: moving.map((effect) => nextPartition(effect, held.get(effect.sent.id) as HeldJob)),
    indexes: moving.map(({ index }) => index),
  };
}

function nextPartition({ sent: { decision }, settled: { lane } }: Effect, held: HeldJob): PartitionIdentity {
  const { partition, jobType, limits } = held;
  const { priority, resource } = partition;
  const queue = isAgain(decision) ? (jobType.retryQueue ?? partition.queue) : partition.queue;
  return partitionIn(
    lane ?? partition.lane,
    { queue, priority, resource, limits, name: jobType.name },
    asideAfter(decision),
  );
}

/**
 * What these jobs are and where they waited: as remembered, or looked up for those that were claimed elsewhere. Kept apart
 * from what the session remembers: another settlement of the same job may make it forget meanwhile.
 */
async function findHeld(session: Session, endings: readonly Ending[]): Promise<ReadonlyMap<string, HeldJob>> {
  const found = new Map<string, HeldJob>();
  const unknown: string[] = [];
  for (const { sent } of endings) {
    const held = session.leases.get(sent.id, sent.run);
    if (held === undefined) unknown.push(sent.id);
    else found.set(sent.id, held);
  }
  if (unknown.length === 0) return found;
  const rows = await session.db.query<[id: string, partition: number, jobType: number, limits: string | null]>(FIND, [
    plain(unknown),
  ]);
  const partitionOf = await session.partitions.load(rows.map(([, partition]) => partition));
  const typeOf = await session.jobTypes.load(rows.map(([, , jobType]) => jobType));
  for (const [id, partition, jobType, limits] of rows) {
    const home = partitionOf(partition);
    if (home !== undefined) {
      found.set(id, { partition: home, jobType: typeOf(jobType), limits: parseLimits(limits ?? '') });
    }
  }
  return found;
}
