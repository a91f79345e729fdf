import { KEY_LIFE, LANE, STATE } from '../codes.ts';
import type { Debounce } from '../store.ts';
import { cancelOne } from './operate.ts';
import { type SharedParts, storedLimits } from './packed-jobs.ts';
import type { Session } from './session.ts';

/** It has never started, and gives its key up when it does. */
const REPLACEABLE = `
  SELECT seq, partition, tags, enqueued_at AS enqueuedAt FROM jobs
  WHERE id = ? AND partition IS NOT NULL AND runs = 0 AND key_life = ${KEY_LIFE.started}`;
interface Replaceable {
  readonly seq: number;
  readonly partition: number;
  readonly tags: string | null;
  readonly enqueuedAt: number;
}

const REPLACE = `
  UPDATE jobs SET state = ?2, partition = ?3, queue = ?4, home_queue = ?4, lane = ${LANE.fresh}, priority = ?5, resource = ?6,
    due_at = ?7, available_at = ?7, policy = ?8, retry_queue = ?9, payload = ?10, tags = ?11, limits = ?12, trace = ?13
  WHERE seq = ?1`;

const DELETE_TAGS = 'DELETE FROM tags WHERE seq = ? AND tag IN (SELECT value FROM json_each(?))';
const ADD_TAGS = 'INSERT OR IGNORE INTO tags (tag, seq) SELECT value, ?1 FROM json_each(?2)';

const DELETE_REACTION = 'DELETE FROM reactions WHERE job = ?';
const ADD_REACTION = 'INSERT INTO reactions (job, reaction) VALUES (?, ?)';

/** The waiting job that holds the key becomes the job that was sent now, under its old id. False when it was left alone. */
export function replace(
  session: Session,
  id: string,
  job: SharedParts,
  payload: string,
  { maxWaitMs }: Debounce,
): boolean {
  const row = session.sql(REPLACEABLE).get(id) as Replaceable | undefined;
  if (row === undefined) return false;
  const { now, strings } = session;
  const latest = maxWaitMs === null ? Number.MAX_SAFE_INTEGER : row.enqueuedAt + maxWaitMs;
  const dueAt = Math.max(now, Math.min(job.dueAt ?? now + job.delayMs, latest));
  const queue = strings.intern(job.queue);
  const name = strings.intern(job.name);
  const resource = job.resource === null ? 0 : strings.internResource(job.resource);
  const { priority } = job;
  const limits = storedLimits(job);
  const partition = session.partitions.enter({ queue, lane: LANE.fresh, priority, resource, name, limits }, dueAt);
  const policy = session.internPolicy(job);
  const retryQueue = job.retryQueue === null ? null : strings.intern(job.retryQueue);
  const tags = job.tags ? JSON.stringify(job.tags) : null;
  const state = dueAt > now ? STATE.scheduled : STATE.ready;
  const where = [row.seq, state, partition, queue, priority, resource, dueAt];
  session.sql(REPLACE).run(...where, policy, retryQueue, payload, tags, limits, job.trace ?? null);
  if (row.tags !== null) session.sql(DELETE_TAGS).run(row.seq, row.tags);
  if (tags !== null) session.sql(ADD_TAGS).run(row.seq, tags);
  session.sql(DELETE_REACTION).run(row.seq);
  if (job.onDead) session.sql(ADD_REACTION).run(row.seq, JSON.stringify(job.onDead));
  session.partitions.leave(row.partition);
  session.madeWork = true;
  return true;
}

/** They started before, so that they gave their key up, and wait to run again. */
const STARTED_BEFORE = `
  SELECT id FROM jobs WHERE key = ? AND name = ? AND partition IS NOT NULL AND runs > 0 AND key_life = ${KEY_LIFE.started}`;

/** Cancels jobs that would run again after the job that was sent now, with an older input. */
export function supersede(session: Session, name: number, key: string): void {
  const rows = session.sql(STARTED_BEFORE).all(key, name) as { id: string }[];
  for (const { id } of rows) cancelOne(session, id);
}
