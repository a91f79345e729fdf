import { states } from '../../job.ts';
import { deadReasons } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { PAGE_BYTES } from '../page.ts';
import type { EndedJob } from '../store.ts';
import { plain } from './connection/arrays.ts';
import type { Session } from './session.ts';
import { isUuid } from './uuid.ts';

const WATCH = 'SELECT @.watch($1::uuid[], $2)';
/** Those that have ended, as many as an answer carries the results of, and with no state those that do not exist: as one snapshot shows both tables. */
const ENDED = `
  SELECT id, state, dead_reason, result, (SELECT e.error FROM @.errors e WHERE e.id = last_error)
  FROM (
    SELECT f.*, sum(octet_length(result)) OVER (ORDER BY f.id) AS bytes, octet_length(result) AS own
    FROM @.finished f WHERE f.id = ANY ($1::uuid[])
  ) f WHERE own IS NULL OR bytes <= ${PAGE_BYTES} OR bytes = own
  UNION ALL
  SELECT g.id, NULL, NULL, NULL, NULL FROM unnest($1::uuid[]) AS g (id)
  WHERE NOT EXISTS (SELECT 1 FROM @.live l WHERE l.id = g.id) AND NOT EXISTS (SELECT 1 FROM @.finished f WHERE f.id = g.id)`;
const CANCEL_REQUESTED = `
  SELECT id FROM @.live WHERE id = ANY ($1::uuid[]) AND cancel_requested AND worker IS NOT NULL`;

type EndedRow = [
  id: string,
  state: number | null,
  deadReason: number | null,
  result: string | null,
  error: string | null,
];

export async function ended(session: Session, ids: readonly string[], watchMs: number | null): Promise<EndedJob[]> {
  const known = plain([...new Set(ids)].filter(isUuid).sort());
  // Committed before the look: what ends a job after that look then sees that it is waited for.
  if (watchMs !== null) await session.db.query(WATCH, [known, watchMs]);
  const rows = await session.db.read<EndedRow>(ENDED, [known]);
  return [...rows.map(toEnded), ...ids.filter((id) => !isUuid(id)).map(notFound)];
}

export async function cancelRequested(session: Session, ids: readonly string[]): Promise<string[]> {
  const rows = await session.db.query<[id: string]>(CANCEL_REQUESTED, [plain(ids.filter(isUuid))]);
  return rows.map(([id]) => id);
}

function toEnded([id, state, deadReason, result, error]: EndedRow): EndedJob {
  if (state === null) return notFound(id);
  return {
    id,
    state: states[state] as EndedJob['state'],
    deadReason: deadReason === null ? null : (deadReasons[deadReason] as EndedJob['deadReason']),
    result,
    error: error === null ? null : (JSON.parse(error) as StoredError),
  };
}

function notFound(id: string): EndedJob {
  return { id, state: 'not-found', deadReason: null, result: null, error: null };
}
