import { type LimitAction, type LimitKey, limitsText } from '../../limit/limit.ts';
import { mostLive } from '../../limit/on-limit.ts';
import { readSettings } from './limit-rules.ts';
import { cancelOne } from './operate.ts';
import type { Session } from './session.ts';

/*
 * Live jobs of a key are those that hold a place of it (limit_slots), and those that wait in partitions of its limits. No more of
 * them are read than fill the key.
 */

/** The jobs `j` that wait behind a key, whose own list of limits is ?3. */
const WAITING = `
  (SELECT ?3 AS limits UNION ALL SELECT limits FROM limit_lists WHERE name = ?1 AND key = ?2) AS lists
  CROSS JOIN partitions p ON p.limits = lists.limits CROSS JOIN jobs j ON j.partition = p.id`;
const LIVE = `
  SELECT j.id FROM limit_slots s CROSS JOIN jobs j ON j.seq = s.seq
  WHERE s.name = ?1 AND s.key = ?2 AND j.finished_at IS NULL
  UNION ALL
  SELECT j.id FROM ${WAITING}
  WHERE NOT EXISTS (SELECT 1 FROM limit_slots s WHERE s.name = ?1 AND s.key = ?2 AND s.seq = j.seq)
  LIMIT ?4`;
const OLDEST = `SELECT j.id FROM ${WAITING} WHERE j.runs = 0 ORDER BY j.seq LIMIT 1`;

interface Found {
  readonly id: string;
}

/**
 * Makes way for a job that is stored next. Answers null; or a live job of a full key when that keeps the new job from being
 * stored. Call it before the new job enters its partition, which may be the one that the cancelled job leaves.
 */
export function makeRoom(session: Session, actions: readonly LimitAction[]): string | null {
  for (const one of actions) {
    const full = one.action === 'cancel-newest' ? jobOfFullKey(session, one) : null;
    if (full !== null) return full;
  }
  for (const one of actions) if (one.action === 'cancel-oldest') cancelOldest(session, one);
  return null;
}

function jobOfFullKey(session: Session, one: LimitKey): string | null {
  const most = mostLive(readSettings(session, one));
  if (most === null) return null;
  const live = session.sql(LIVE).all(one.limit, one.key, limitsText([one]), most) as unknown as Found[];
  return live.length < most ? null : (live[0] as Found).id;
}

function cancelOldest(session: Session, one: LimitKey): void {
  if (jobOfFullKey(session, one) === null) return;
  const oldest = session.sql(OLDEST).get(one.limit, one.key, limitsText([one])) as Found | undefined;
  if (oldest !== undefined) cancelOne(session, oldest.id);
}
