import type { Session } from './session.ts';

/** So many names are looked at in one transaction. */
const LOOKED_AT = 1_000;
const TEMPORARY = 'SELECT id FROM strings WHERE is_temporary IS NOT NULL AND id > ? ORDER BY id LIMIT ?';
/** The last number stays, so that the next text gets a number of its own. */
const FORGET = `
  DELETE FROM strings WHERE id = ?1 AND id < (SELECT max(id) FROM strings)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE resource = ?1 AND resource <> 0)
    AND NOT EXISTS (SELECT 1 FROM partitions WHERE resource = ?1)
    AND NOT EXISTS (SELECT 1 FROM gates WHERE kind = 'resource' AND name = ?1)
    AND NOT EXISTS (SELECT 1 FROM gate_history WHERE kind = 'resource' AND name = ?1)
    AND NOT EXISTS (SELECT 1 FROM holds WHERE scope = 'resource' AND name = ?1)`;

/** Deletes names of resources with a key that nothing refers to any more. True when there may be more of them. */
export function forgetNames(session: Session): boolean {
  const rows = session.sql(TEMPORARY).all(session.lastNameLookedAt, LOOKED_AT) as { id: number }[];
  session.lastNameLookedAt = rows.length < LOOKED_AT ? 0 : (rows.at(-1) as { id: number }).id;
  let forgotten = 0;
  for (const { id } of rows) forgotten += Number(session.sql(FORGET).run(id).changes);
  return rows.length === LOOKED_AT && forgotten > 0;
}
