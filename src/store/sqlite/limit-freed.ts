import { limitsText } from '../../limit/limit.ts';
import type { Session } from './session.ts';

/* Keys that may have room, for which partitions wait: limit-waits.ts says what becomes of them. Write transactions only. */

const FREE = `
  INSERT OR IGNORE INTO limit_freed (waits_for) SELECT ?1 WHERE EXISTS (SELECT 1 FROM partitions WHERE waits_for = ?1)`;
const FREE_ALL = `
  INSERT OR IGNORE INTO limit_freed (waits_for)
  SELECT waits_for FROM partitions WHERE waits_for >= ?1 AND waits_for < ?2`;

/** A key, as `limitsText` writes it, may have room. */
export function free(session: Session, key: string): void {
  session.sql(FREE).run(key);
}

/** All keys of a limit may have room. */
export function freeAll(session: Session, limit: string): void {
  // All texts that begin with the name and a comma: a quote is next, and the character after a quote is not in them.
  const start = limitsText([{ limit, key: '' }]).slice(0, -'""]]'.length);
  session.sql(FREE_ALL).run(`${start}"`, `${start}#`);
}
