import { type LimitKey, parseLimits, settingsFor } from '../../limit/limit.ts';
import { startsAt } from '../../limit/rate.ts';
import { parseLimitedQueue } from '../limited-queue.ts';
import type { LimitFilter, LimitInfo, LimitKeyFilter, LimitKeyInfo } from '../store.ts';
import { type RuleRow, readNextStart, readRules, toRules } from './limit-rules.ts';
import { SLOT } from './limit-slots.ts';
import type { Session } from './session.ts';

/* What operators see of limits. These reads walk over all that waits behind the limits; no claim uses them. */

const RULES = 'SELECT DISTINCT name FROM limit_rules';
const KEYS_SET = `
  SELECT name, count(*) AS n FROM limit_rules WHERE is_key = 1 AND operator IS NOT NULL GROUP BY name`;
const SLOTS = `
  SELECT name, count(*) FILTER (WHERE state = ${SLOT.running}) AS running,
    count(*) FILTER (WHERE state = ${SLOT.suspect}) AS suspects
  FROM limit_slots GROUP BY name`;
const QUEUES = 'SELECT DISTINCT limited AS id FROM limited_queues';
const WAITING_IN = 'SELECT count(*) AS n FROM jobs WHERE partition IN (SELECT id FROM partitions WHERE queue = ?)';
const KEYS_SET_OF = 'SELECT key FROM limit_rules WHERE name = ? AND is_key = 1 AND operator IS NOT NULL';
const KEY_RULES = 'SELECT key, code, operator FROM limit_rules WHERE name = ? AND is_key = 1';
const KEY_SLOTS = `
  SELECT s.key, count(*) FILTER (WHERE s.state = ${SLOT.running}) AS running,
    count(*) FILTER (WHERE s.state = ${SLOT.suspect}) AS suspects,
    count(*) FILTER (WHERE s.state = ${SLOT.suspect} AND j.due_at <= ?2) AS due
  FROM limit_slots s LEFT JOIN jobs j ON j.seq = s.seq WHERE s.name = ?1 GROUP BY s.key`;
const KEYS_WAITING_IN = `
  SELECT partitions.limits AS limits, count(*) AS n, count(*) FILTER (WHERE jobs.due_at <= ?2) AS due
  FROM partitions CROSS JOIN jobs ON jobs.partition = partitions.id
  WHERE partitions.queue = ?1 GROUP BY partitions.limits`;

interface Use {
  readonly running: number;
  readonly waiting: number;
}

interface KeyUse extends Use {
  readonly due: number;
}

/** Counts by name. Suspects wait in ordinary partitions, and are known by their slots. */
class Uses {
  readonly all: Map<string, KeyUse> = new Map();

  add(name: string, { running = 0, waiting = 0, due = 0 }: Partial<KeyUse>): void {
    const use = this.all.get(name) ?? { running: 0, waiting: 0, due: 0 };
    this.all.set(name, { running: use.running + running, waiting: use.waiting + waiting, due: use.due + due });
  }
}

interface SlotCount {
  readonly running: number;
  readonly suspects: number;
}

export function limits(session: Session, { names, limit }: LimitFilter): LimitInfo[] {
  const uses = new Uses();
  for (const { name } of session.sql(RULES).all() as { name: string }[]) uses.add(name, {});
  for (const { name, running, suspects } of session.sql(SLOTS).all() as unknown as (SlotCount & { name: string })[]) {
    uses.add(name, { running, waiting: suspects });
  }
  for (const queue of limitedQueuesOf(session)) {
    const { n } = session.sql(WAITING_IN).get(queue.id) as { n: number };
    for (const name of queue.limits) uses.add(name, { waiting: n });
  }
  const keysSet = new Map(
    (session.sql(KEYS_SET).all() as { name: string; n: number }[]).map(({ name, n }) => [name, n]),
  );
  return [...uses.all]
    .filter(([name]) => names === undefined || names.includes(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, limit)
    .map(([name, { running, waiting }]) => ({
      ...{ name, ...readRules(session, name, null) },
      ...{ running, waiting, keysSet: keysSet.get(name) ?? 0 },
    }));
}

export function limitKeys(session: Session, limit: string, filter: LimitKeyFilter): LimitKeyInfo[] {
  const ofLimit = readRules(session, limit, null);
  const set = new Set((session.sql(KEYS_SET_OF).all(limit) as { key: string }[]).map(({ key }) => key));
  return [...keyUses(session, limit)]
    .filter(([key]) => filter.keys === undefined || filter.keys.includes(key))
    .sort(
      ([a, { waiting }], [b, other]) =>
        Number(set.has(b)) - Number(set.has(a)) || other.waiting - waiting || (a < b ? -1 : 1),
    )
    .slice(0, filter.limit)
    .map(([key, use]) => {
      const one: LimitKey = { limit, key };
      const rules = readRules(session, limit, key);
      const settings = settingsFor(ofLimit, rules);
      const { rate } = settings;
      return {
        ...one,
        ...rules,
        settings,
        ...use,
        startsAt: rate === null ? null : startsAt(rate, readNextStart(session, one)),
      };
    });
}

/** Keys that have rules or are in use. */
function keyUses(session: Session, limit: string): Map<string, KeyUse> {
  const uses = new Uses();
  for (const { key, ...rules } of session.sql(KEY_RULES).all(limit) as unknown as (RuleRow & { key: string })[]) {
    const { code, set } = toRules(rules);
    if (code !== null || set !== null) uses.add(key, {});
  }
  type KeySlots = SlotCount & { readonly key: string; readonly due: number };
  for (const row of session.sql(KEY_SLOTS).all(limit, session.now) as unknown as KeySlots[]) {
    uses.add(row.key, { running: row.running, waiting: row.suspects, due: row.due });
  }
  for (const queue of limitedQueuesOf(session).filter(({ limits: names }) => names.includes(limit))) {
    type Waiting = { readonly limits: string; readonly n: number; readonly due: number };
    for (const row of session.sql(KEYS_WAITING_IN).all(queue.id, session.now) as unknown as Waiting[]) {
      const one = parseLimits(row.limits).find((found) => found.limit === limit) as LimitKey;
      uses.add(one.key, { waiting: row.n, due: row.due });
    }
  }
  return uses.all;
}

function limitedQueuesOf(session: Session): { readonly id: number; readonly limits: readonly string[] }[] {
  const rows = session.sql(QUEUES).all() as { id: number }[];
  return rows.map(({ id }) => ({ id, limits: parseLimitedQueue(session.strings.text(id)).limits }));
}
