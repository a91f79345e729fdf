import { limitsText, rulesAfter } from '../../limit/limit.ts';
import { permitted } from '../../limit/permit.ts';
import type { LimitWrite, PermitAnswer, PermitRequest } from '../store.ts';
import { free, freeAll } from './limit-freed.ts';
import { readNextStart, readRules, readSettings, writeNextStart } from './limit-rules.ts';
import type { Session } from './session.ts';

/* What is said of limits from outside of a claim: rules, and permits. */

const WRITE = 'INSERT OR REPLACE INTO limit_rules (name, is_key, key, code, operator) VALUES (?, ?, ?, ?, ?)';
const REMOVE = 'DELETE FROM limit_rules WHERE name = ? AND is_key = ? AND key = ?';

export function writeLimits(session: Session, writes: readonly LimitWrite[]): void {
  for (const write of writes) {
    const { limit, key } = write;
    const rules = rulesAfter(readRules(session, limit, key), write);
    const where = [limit, key === null ? 0 : 1, key ?? ''] as const;
    if (rules.code === null && rules.set === null) session.sql(REMOVE).run(...where);
    else session.sql(WRITE).run(...where, textOf(rules.code), textOf(rules.set));
    if (key === null) freeAll(session, limit);
    else free(session, limitsText([{ limit, key }]));
  }
  session.madeWork = true;
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
