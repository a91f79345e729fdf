import { ConfigError } from '../../errors.ts';
import { LANE, STATE } from '../codes.ts';
import { REDRIVEN } from '../error-groups.ts';
import type { DeadSelection, Redriven, RedriveRefusal, RedriveRequest } from '../store.ts';
import { holderOf, KEY_AFTER_REDRIVE, type Keyed, keySlot, wantsKeyAgain } from './keys.ts';
import { moveError, remove, type StoredRow } from './operate.ts';
import type { Session } from './session.ts';

const REDRIVE = `
  UPDATE jobs SET state = ${STATE.ready}, lane = ${LANE.redrive}, queue = home_queue, partition = ?4,
    due_at = ?2, available_at = ?2, dead_reason = NULL, finished_at = NULL, held_key = ${KEY_AFTER_REDRIVE},
    attempts = CASE WHEN ?3 THEN 0 ELSE attempts END, crashes = CASE WHEN ?3 THEN 0 ELSE crashes END,
    first_started_at = NULL,
    previous_delay_ms = CASE WHEN ?3 THEN NULL ELSE previous_delay_ms END,
    spent_at = CASE WHEN ?3 THEN NULL ELSE spent_at END, spent_count = CASE WHEN ?3 THEN NULL ELSE spent_count END
  WHERE seq = ?1`;
/** A dry run reads so many dead jobs at a time, so that other readers of the process need not wait for all of them. */
const PREVIEWED_AT_ONCE = 2_000;

interface DeadRow extends StoredRow, Keyed {
  readonly id: string;
  readonly name: number;
  readonly priority: number;
  readonly resource: number;
  readonly policy: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly finished_at: number;
}

/** The last job of a page. */
export type DeadPosition = readonly [finishedAt: number, seq: number];

/** Oldest first, and only those after a position, if one is given. */
function selectDead(session: Session, selection: DeadSelection, after: DeadPosition | null = null): DeadRow[] {
  const { ids, name, queue, reason, limit } = selection;
  if (ids === undefined && name === undefined && queue === undefined && reason === undefined) {
    throw new ConfigError('expected at least one of ids, name, queue or reason to select dead jobs by, got none');
  }
  const sql = `
    SELECT seq, id, name, home_queue, priority, resource, policy, attempts, crashes, key, key_life, finished_at, fingerprint
    FROM jobs
    WHERE state = ${STATE.dead} AND finished_at IS NOT NULL
      ${after === null ? '' : 'AND (finished_at, seq) > (:finishedAt, :seq)'}
      ${ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(:ids))'}
      ${name === undefined ? '' : 'AND name = (SELECT id FROM strings WHERE text = :name)'}
      ${queue === undefined ? '' : 'AND queue = (SELECT id FROM strings WHERE text = :queue)'}
      ${reason === undefined ? '' : 'AND dead_reason = :reason'}
    ORDER BY finished_at, seq LIMIT :limit`;
  const bound = {
    ...(after && { finishedAt: after[0], seq: after[1] }),
    ...(ids && { ids: JSON.stringify(ids) }),
    ...(name !== undefined && { name }),
    ...(queue !== undefined && { queue }),
    ...(reason !== undefined && { reason }),
    limit: limit ?? -1,
  };
  return session.sql(sql).all(bound) as unknown as DeadRow[];
}

export function redrive(session: Session, request: RedriveRequest): Redriven {
  const ids: string[] = [];
  const skipped: Redriven['skipped'] = [];
  for (const row of selectDead(session, request)) {
    const why = refusal(session, row, request);
    if (why) {
      skipped.push({ id: row.id, why });
      continue;
    }
    ids.push(row.id);
    const { seq, home_queue: queue, priority, resource, name } = row;
    const partition = session.partitions.enter({ queue, lane: LANE.redrive, priority, resource, name }, session.now);
    session.sql(REDRIVE).run(seq, session.now, request.attempts === 'reset' ? 1 : 0, partition);
    session.count(queue, name, 'state:dead', -1);
    moveError(session, row, REDRIVEN);
    session.madeWork = true;
  }
  return { ids, skipped };
}

/** A part of a dry run: what would become of each job, and the key it would take. */
export interface RedrivePreview {
  readonly jobs: readonly {
    readonly id: string;
    readonly why: RedriveRefusal | null;
    readonly keySlot: string | null;
  }[];
  /** Where the next part begins; null when this is the last. */
  readonly next: DeadPosition | null;
}

export function previewRedrive(session: Session, request: RedriveRequest, after: DeadPosition | null): RedrivePreview {
  const limit = Math.min(request.limit ?? PREVIEWED_AT_ONCE, PREVIEWED_AT_ONCE);
  const rows = selectDead(session, { ...request, limit }, after);
  const last = rows.length < limit ? undefined : rows.at(-1);
  return {
    jobs: rows.map((row) => ({
      id: row.id,
      why: refusal(session, row, request),
      keySlot: wantsKeyAgain(row) ? keySlot(row) : null,
    })),
    next: last ? [last.finished_at, last.seq] : null,
  };
}

function refusal(session: Session, row: DeadRow, request: RedriveRequest): RedriveRefusal | null {
  const { maxAttempts, maxCrashes } = session.policy(row.policy).policy;
  if (request.attempts === 'keep' && (row.attempts >= maxAttempts || row.crashes >= maxCrashes)) return 'nothing-left';
  if (!wantsKeyAgain(row)) return null;
  const holder = holderOf(session, row.name, row.key);
  return holder === null || holder === row.id ? null : 'key-taken';
}

export function discard(session: Session, selection: DeadSelection): string[] {
  return selectDead(session, selection).map((row) => {
    remove(session, row, 'dead');
    return row.id;
  });
}
