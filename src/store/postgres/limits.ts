import { StoreBusyError } from '../../errors.ts';
import { settingsFor } from '../../limit/limit.ts';
import { permitted } from '../../limit/permit.ts';
import { startsAt } from '../../limit/rate.ts';
import { doubling, withRetries } from '../../retrying.ts';
import { orderRow } from '../orders.ts';
import type {
  LimitFilter,
  LimitInfo,
  LimitKeyFilter,
  LimitKeyInfo,
  LimitWrite,
  Order,
  PermitAnswer,
  PermitRequest,
} from '../store.ts';
import { texts } from './connection/arrays.ts';
import { LimitRooms, type SettingsRow, toRules, type UseRow } from './limit-rooms.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Partition } from './partitions.ts';
import type { Session } from './session.ts';
import { LANE } from './sql/shared.ts';

const USES = 'SELECT *, @.now_ms() FROM @.read_uses($1::text[], $2::text[])';
const TAKE = 'SELECT @.take_permit($1, $2, $3, $4, $5)';
const WRITE = 'SELECT @.write_limit($1, $2, $3, $4, $5, $6)';
/** An order in one transaction, however many rules it writes. */
const WRITE_BY_ORDER = `
  WITH w AS MATERIALIZED (
    SELECT @.write_limit(g.l, g.k, g.c, g.r, g.m, g.t)
    FROM json_to_recordset($1::json) AS g (l text, k text, c boolean, r text, m boolean, t boolean))
  SELECT ${recordOrder(2, '0 * (SELECT count(*) FROM w)')}`;

/** The jobs of a limit that run, and those that wait, by key: in limited partitions, and as suspects in ordinary ones. */
const JOBS = `
  SELECT s.limit_name, s.key, (w.worker IS NOT NULL)::int AS running, (w.worker IS NULL)::int AS waiting,
    (w.worker IS NULL AND w.due_at <= (SELECT @.now_ms()))::int AS due
  FROM @.limit_slots s CROSS JOIN LATERAL unnest(s.jobs, s.runs) AS j (job, run)
  JOIN @.live w ON w.id = j.job AND w.runs = j.run JOIN @.partitions p ON p.id = w.partition
  WHERE w.worker IS NOT NULL OR p.lane = ${LANE.suspect}
  UNION ALL
  SELECT b.limit_name, b.key, 0, 1, (w.due_at <= (SELECT @.now_ms()))::int
  FROM @.limit_partitions b JOIN @.live w ON w.partition = b.partition WHERE w.worker IS NULL`;
const LIMITS = `
  SELECT n.name, l.code, l.operator, coalesce(j.running, 0), coalesce(j.waiting, 0),
    (SELECT count(*)::int FROM @.limit_keys k WHERE k.limit_name = n.name AND k.operator IS NOT NULL)
  FROM (SELECT name FROM @.limit_settings UNION SELECT limit_name FROM @.limit_partitions UNION SELECT limit_name FROM @.limit_slots) n
  LEFT JOIN @.limit_settings l ON l.name = n.name
  LEFT JOIN (SELECT limit_name, sum(running) AS running, sum(waiting) AS waiting FROM (${JOBS}) j GROUP BY 1) j ON j.limit_name = n.name
  WHERE $1::text[] IS NULL OR n.name = ANY ($1) ORDER BY n.name COLLATE "C" LIMIT $2`;
const KEYS = `
  SELECT n.key, k.code, k.operator, coalesce(j.running, 0), coalesce(j.waiting, 0), coalesce(j.due, 0), coalesce(k.next_start_at, 0), l.code, l.operator
  FROM (
    SELECT key FROM @.limit_keys WHERE limit_name = $1 AND (code IS NOT NULL OR operator IS NOT NULL)
    UNION SELECT key FROM (${JOBS}) u WHERE u.limit_name = $1) n
  LEFT JOIN @.limit_keys k ON k.limit_name = $1 AND k.key = n.key LEFT JOIN @.limit_settings l ON l.name = $1
  LEFT JOIN (SELECT key, sum(running) AS running, sum(waiting) AS waiting, sum(due) AS due FROM (${JOBS}) j WHERE j.limit_name = $1 GROUP BY 1) j ON j.key = n.key
  WHERE $2::text[] IS NULL OR n.key = ANY ($2) ORDER BY k.operator IS NULL, coalesce(j.waiting, 0) DESC, n.key COLLATE "C" LIMIT $3`;

export class LimitConflict extends StoreBusyError {
  constructor() {
    super('expected to take from a limit, but other processes did so again and again; nothing was taken. Try again.');
  }
}

/** Each time one process wins, so this many would have to take from the same limit at once, again and again. */
export function untilTaken<Answer>({ db }: Session, call: () => Promise<Answer>): Promise<Answer> {
  const options = {
    policy: doubling(2, 100),
    isTransient: (error: unknown): boolean => error instanceof LimitConflict,
    maxAttempts: 40,
  };
  return withRetries(db.clock, options, call);
}

type UsesRow = [settings: string | null, uses: string | null, now: number];

export function roomsOf(settings: string | null, uses: string | null, now: number): LimitRooms {
  return new LimitRooms(JSON.parse(settings ?? '[]') as SettingsRow[], JSON.parse(uses ?? '[]') as UseRow[], now);
}

/** How much of the keys of these partitions is in use. Usually they have none, and nothing is asked. */
export async function readUses({ db }: Session, partitions: readonly Partition[], now: number): Promise<LimitRooms> {
  const keys = new Map(partitions.flatMap(({ limits }) => limits.map((one) => [JSON.stringify(one), one])));
  if (keys.size === 0) return new LimitRooms([], [], now);
  const wanted = [...keys.values()];
  const values = [texts(wanted.map(({ limit }) => limit)), texts(wanted.map(({ key }) => key))];
  const [row] = await db.lookUp<UsesRow>(USES, values);
  const [settings, uses] = row as UsesRow;
  return roomsOf(settings, uses, now);
}

export function permit(session: Session, { limit, key, cost }: PermitRequest): Promise<PermitAnswer> {
  const { db } = session;
  return untilTaken(session, async () => {
    const [row] = await db.lookUp<UsesRow>(USES, [texts([limit]), texts([key])]);
    const [settingsText, usesText, now] = row as UsesRow;
    const [, version, code, operator] = (JSON.parse(settingsText ?? '[]') as SettingsRow[])[0] ?? [
      limit,
      0,
      null,
      null,
    ];
    const [, , keyCode, keyOperator, , , , nextStartAt] = (JSON.parse(usesText as string) as UseRow[])[0] as UseRow;
    const { rate } = settingsFor(toRules(code, operator), toRules(keyCode, keyOperator));
    if (rate === null) return { now, startsAt: null, burst: null };
    const answer = permitted(rate, nextStartAt, now, cost);
    if ('askAt' in answer) return { now, startsAt: answer.askAt, burst: rate.burst };
    const [taken] = await db.query<[boolean]>(TAKE, [limit, key, version, nextStartAt, answer.nextStartAt]);
    if (!(taken as [boolean])[0]) throw new LimitConflict();
    return { now, startsAt: null, burst: rate.burst };
  });
}

export async function writeLimits({ db }: Session, writes: readonly LimitWrite[], order?: Order): Promise<void> {
  const rules = writes.map(({ limit: l, key: k, source, settings, merge: m = false }) => {
    const t = settings !== null && 'total' in settings && settings.total !== null;
    return { l, k, c: source === 'code', r: settings === null ? null : JSON.stringify(settings), m, t };
  });
  if (order === undefined) {
    for (const { l, k, c, r, m, t } of rules) await db.query(WRITE, [l, k, c, r, m, t]);
    return;
  }
  // Each takes a lock of its limit: in one order, so that no two wait for each other.
  const inOrder = rules.toSorted((a, b) => (a.l < b.l ? -1 : Number(a.l > b.l)));
  await db.query(WRITE_BY_ORDER, [JSON.stringify(inOrder), ...orderValues(orderRow(order, 'limit'))]);
}

type LimitRow = [
  name: string,
  code: string | null,
  operator: string | null,
  running: number,
  waiting: number,
  keysSet: number,
];

export async function limits({ db }: Session, { names, limit }: LimitFilter): Promise<LimitInfo[]> {
  const rows = await db.read<LimitRow>(LIMITS, [names === undefined ? null : texts(names), limit]);
  return rows.map(([name, code, operator, running, waiting, keysSet]) => ({
    name,
    ...toRules(code, operator),
    running,
    waiting,
    keysSet,
  }));
}

type KeyRow = [
  key: string,
  code: string | null,
  operator: string | null,
  running: number,
  waiting: number,
  due: number,
  nextStartAt: string,
  limitCode: string | null,
  limitOperator: string | null,
];

export async function limitKeys(
  { db }: Session,
  name: string,
  { keys, limit }: LimitKeyFilter,
): Promise<LimitKeyInfo[]> {
  const rows = await db.read<KeyRow>(KEYS, [name, keys === undefined ? null : texts(keys), limit]);
  return rows.map(([key, code, operator, running, waiting, due, nextStartAt, limitCode, limitOperator]) => {
    const rules = toRules(code, operator);
    const settings = settingsFor(toRules(limitCode, limitOperator), rules);
    const at = settings.rate === null ? null : startsAt(settings.rate, Number(nextStartAt));
    return { limit: name, key, ...rules, settings, running, waiting, due, startsAt: at };
  });
}
