import { KEY_LIFE, LANE, STATE } from '../codes.ts';
import { splitJson } from '../json.ts';
import { replace, supersede } from './debounce.ts';
import { holderOf, openWindow, windowHolderOf } from './keys.ts';
import { makeRoom } from './on-limit.ts';
import { type PackedEnqueued, type PackedNewJobs, type SharedParts, storedLimits } from './packed-jobs.ts';
import type { Session } from './session.ts';

/** So many jobs go with one statement, to which what they share is given once. */
const TOGETHER = 16;
const INSERT_MANY = insert(TOGETHER, '');
const INSERT_ONE = insert(1, '');
/** Of jobs with limits or a trace, which most have not. */
const INSERT_MANY_MARKED = insert(TOGETHER, ', limits, trace');
const INSERT_ONE_MARKED = insert(1, ', limits, trace');

/** The first thirteen values, and those of `also`, are those that jobs share, then come the id and the payload of each. */
function insert(jobs: number, also: '' | ', limits, trace'): string {
  const first = also === '' ? 14 : 16;
  const own = Array.from({ length: jobs }, (_, index) => `(?${first + 2 * index}, ?${first + 1 + 2 * index})`);
  // The condition only keeps ON CONFLICT from being read as part of a join.
  return `
    INSERT INTO jobs (id, payload, state, partition, queue, home_queue, lane, priority, resource, due_at, available_at,
                      enqueued_at, name, policy, retry_queue, key, key_life, held_key, tags${also})
    SELECT column1, column2, ?1, ?2, ?3, ?3, ${LANE.fresh}, ?4, ?5, ?6, max(?6, ?7), ?7, ?8, ?9, ?10, ?11, ?12, CASE ?12 WHEN ${KEY_LIFE.window} THEN NULL ELSE ?11 END, ?13${also && ', ?14, ?15'}
    FROM (VALUES ${own.join(', ')}) WHERE true
    ON CONFLICT DO NOTHING`;
}

const ADD_TAGS = `
  INSERT OR IGNORE INTO tags (tag, seq) SELECT value, (SELECT seq FROM jobs WHERE id = ?) FROM json_each(?)`;
const ADD_REACTION = 'INSERT INTO reactions (job, reaction) SELECT seq, ?2 FROM jobs WHERE id = ?1';
const HAS_ID = 'SELECT 1 FROM jobs WHERE id = ?';

export function enqueue(session: Session, ...[ids, joined, groups]: PackedNewJobs): PackedEnqueued {
  const payloads = splitJson(joined);
  const taken: [index: number, holder: string, replaced: boolean][] = [];
  let at = 0;
  for (const { shared, count } of groups) {
    const queue = session.strings.intern(shared.queue);
    const name = session.strings.intern(shared.name);
    const refusedFor = shared.onLimit === undefined ? null : refusal(session, ids[at] as string, name, shared);
    if (refusedFor !== null) {
      taken.push([at++, refusedFor, false]);
      continue;
    }
    const tags = shared.tags ? JSON.stringify(shared.tags) : null;
    const [partition, common] = commonValues(session, shared, queue, name);
    const limits = storedLimits(shared);
    const reaction = shared.onDead ? JSON.stringify(shared.onDead) : null;
    const isMarked = limits !== null || shared.trace !== undefined;
    common.push(tags);
    if (isMarked) common.push(limits, shared.trace ?? null);
    let added = 0;
    for (const end = at + count; at < end; ) {
      // Jobs with a key go one by one: each may find that another holds it. So do those with tags or a reaction, which have rows of their own.
      const isAlone = shared.key !== null || tags !== null || reaction !== null;
      const together = !isAlone && end - at >= TOGETHER ? TOGETHER : 1;
      const values = [...common];
      for (let index = at; index < at + together; index++) values.push(ids[index] as string, payloads[index] as string);
      const isHeld = shared.key !== null && isHeldElsewhere(session, name, shared.key, shared.windowMs);
      const changes = isHeld ? 0 : session.sql(statementFor(together, isMarked)).run(...values).changes;
      added += Number(changes);
      if (tags !== null && changes > 0) session.sql(ADD_TAGS).run(ids[at] as string, tags);
      if (reaction !== null && changes > 0) session.sql(ADD_REACTION).run(ids[at] as string, reaction);
      const holder = changes === 0 ? otherHolder(session, ids[at] as string, name, shared.key) : null;
      if (holder !== null) {
        const { debounce } = shared;
        const payload = payloads[at] as string;
        taken.push([at, holder, debounce !== undefined && replace(session, holder, shared, payload, debounce)]);
      }
      if (changes > 0 && shared.key !== null) {
        const { windowMs } = shared;
        if (windowMs !== undefined) openWindow(session, name, shared.key, ids[at] as string, windowMs);
        if (shared.debounce) supersede(session, name, shared.key);
      }
      at += together;
    }
    if (added === 0) {
      session.partitions.leave(partition);
      continue;
    }
    session.count(queue, name, 'enqueued', added);
    // A job for later matters too: a waiting worker must learn when it falls due.
    session.madeWork = true;
  }
  return taken;
}

function statementFor(together: number, isMarked: boolean): string {
  if (isMarked) return together === 1 ? INSERT_ONE_MARKED : INSERT_MANY_MARKED;
  return together === 1 ? INSERT_ONE : INSERT_MANY;
}

/** What the jobs of a group share, and the partition they enter. */
function commonValues(
  session: Session,
  shared: SharedParts,
  queue: number,
  name: number,
): [partition: number, values: (string | number | null)[]] {
  const { now, strings } = session;
  const { priority, key, retryQueue } = shared;
  // Times before the epoch are as good as the epoch, and not every reader of the file could tell them.
  const dueAt = Math.max(0, shared.dueAt ?? now + shared.delayMs);
  const resource = shared.resource === null ? 0 : strings.internResource(shared.resource);
  const partition = session.partitions.enter(
    { queue, lane: LANE.fresh, priority, resource, name, limits: storedLimits(shared) },
    dueAt,
  );
  const policy = session.internPolicy(shared);
  const state = dueAt > now ? STATE.scheduled : STATE.ready;
  const retriesIn = retryQueue === null ? null : strings.intern(retryQueue);
  const keyLife = KEY_LIFE[shared.keyLife];
  return [partition, [state, partition, queue, priority, resource, dueAt, now, name, policy, retriesIn, key, keyLife]];
}

/** A live job of a full limit for which this one is not stored. A job that is sent again, or whose key is held, asks no limit. */
function refusal(session: Session, id: string, name: number, { key, onLimit = [] }: SharedParts): string | null {
  if (session.sql(HAS_ID).get(id) || (key !== null && holderOf(session, name, key) !== null)) return null;
  return makeRoom(session, onLimit);
}

/** Whether the key is held in a way that the unique index of `held_key` does not tell. */
function isHeldElsewhere(session: Session, name: number, key: string, windowMs: number | undefined): boolean {
  const holder = windowMs === undefined ? windowHolderOf(session, name, key) : holderOf(session, name, key);
  return holder !== null;
}

/** Null when this very job is sent again, which changes nothing; else a live job holds its key. */
function otherHolder(session: Session, id: string, name: number, key: string | null): string | null {
  if (key === null || session.sql(HAS_ID).get(id)) return null;
  return holderOf(session, name, key);
}
