import { type LimitKey, type LimitSettings, limitsText, type Rate, rulesAfter } from '../../limit/limit.ts';
import { permitted } from '../../limit/permit.ts';
import { afterChange } from '../../limit/rate.ts';
import { orderRow } from '../orders.ts';
import type { LimitWrite, Order, PermitAnswer, PermitRequest } from '../store.ts';
import { free, freeAll } from './limit-freed.ts';
import { readNextStart, readRules, readSettings, writeNextStart } from './limit-rules.ts';
import { recordOrder } from './operations.ts';
import type { Session } from './session.ts';

/* What is said of limits from outside of a claim: rules, and permits. */

const WRITE = 'INSERT OR REPLACE INTO limit_rules (name, is_key, key, code, operator) VALUES (?, ?, ?, ?, ?)';
const REMOVE = 'DELETE FROM limit_rules WHERE name = ? AND is_key = ? AND key = ?';
const OWING = 'SELECT key FROM limit_rates WHERE name = ? AND next_start_at > ?';

export function writeLimits(session: Session, writes: readonly LimitWrite[], order?: Order): void {
  if (order) recordOrder(session, orderRow(order, 'limit'));
  for (const write of writes) {
    const { limit, key, source } = write;
    const before = readRules(session, limit, key);
    const rules = rulesAfter(before, write);
    const owing = isSameRate(before[source], rules[source]) ? [] : keysOwing(session, limit, key);
    const where = [limit, key === null ? 0 : 1, key ?? ''] as const;
    if (rules.code === null && rules.set === null) session.sql(REMOVE).run(...where);
    else session.sql(WRITE).run(...where, textOf(rules.code), textOf(rules.set));
    for (const { one, rate, at } of owing) {
      writeNextStart(session, one, afterChange(rate, readSettings(session, one).rate, at, session.now));
    }
    if (key === null) freeAll(session, limit);
    else free(session, limitsText([{ limit, key }]));
  }
}

function isSameRate(before: Partial<LimitSettings> | null, after: Partial<LimitSettings> | null): boolean {
  return JSON.stringify(before?.rate) === JSON.stringify(after?.rate);
}

interface Owing {
  readonly one: LimitKey;
  readonly rate: Rate | null;
  /** `nextStartAt` of the key, which lies ahead. */
  readonly at: number;
}

/** The key, or keys of the limit, that have started more than their rate spreads up to now. */
function keysOwing(session: Session, limit: string, key: string | null): Owing[] {
  const { now } = session;
  const keys = key === null ? (session.sql(OWING).all(limit, now) as { key: string }[]) : [{ key }];
  return keys
    .map((found) => ({ limit, key: found.key }))
    .map((one) => ({ one, rate: readSettings(session, one).rate, at: readNextStart(session, one) }))
    .filter(({ at }) => at > now);
}

function textOf(settings: object | null): string | null {
  return settings && JSON.stringify(settings);
}

export function permit(session: Session, request: PermitRequest): PermitAnswer {
  const { now } = session;
  const { rate } = readSettings(session, request);
  if (rate === null) return { now, startsAt: null, burst: null };
  const answer = permitted(rate, readNextStart(session, request), now, request.cost);
  if ('askAt' in answer) return { now, startsAt: answer.askAt, burst: rate.burst };
  writeNextStart(session, request, answer.nextStartAt);
  return { now, startsAt: null, burst: rate.burst };
}

/** Answers without a write transaction when nothing is granted, or there is no rate; null when it takes a write. */
export function permitNothing(session: Session, request: PermitRequest): PermitAnswer | null {
  const { rate } = readSettings(session, request);
  const isGranted =
    rate !== null && 'nextStartAt' in permitted(rate, readNextStart(session, request), session.now, request.cost);
  return isGranted ? null : permit(session, request);
}
