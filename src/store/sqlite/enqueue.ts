import { KEY_LIFE, LANE, STATE } from '../codes.ts';
import { splitJson } from '../json.ts';
import type { PackedEnqueued, PackedNewJobs, SharedParts } from './packed-jobs.ts';
import type { Session } from './session.ts';

/** So many jobs go with one statement, to which what they share is given once. */
const TOGETHER = 16;
const INSERT_MANY = insert(TOGETHER);
const INSERT_ONE = insert(1);

/** The first eleven values are those that jobs share, then come the id and the payload of each. */
function insert(jobs: number): string {
  const own = Array.from({ length: jobs }, (_, index) => `(?${12 + 2 * index}, ?${13 + 2 * index})`);
  // The condition only keeps ON CONFLICT from being read as part of a join.
  return `
    INSERT INTO jobs (id, payload, state, stream, lane, priority, due_at, available_at, enqueued_at, name, policy,
                      home_stream, retry_stream, key, key_life, held_key)
    SELECT column1, column2, ?1, ?2, ?3, ?4, ?5, max(?5, ?6), ?6, ?7, ?8, ?2, ?9, ?10, ?11, ?10
    FROM (VALUES ${own.join(', ')}) WHERE true
    ON CONFLICT DO NOTHING`;
}

const HAS_ID = 'SELECT 1 FROM jobs WHERE id = ?';
const HOLDER = 'SELECT id FROM jobs WHERE name = ? AND held_key = ?';

const FRESH = LANE.fresh;

export function enqueue(session: Session, ...[ids, joined, groups]: PackedNewJobs): PackedEnqueued {
  const payloads = splitJson(joined);
  const taken: [index: number, holder: string][] = [];
  let at = 0;
  for (const { shared, count } of groups) {
    const stream = session.streams.intern(shared.queue, shared.resource);
    const name = session.words.intern(shared.name);
    const common = commonValues(session, shared, stream, name);
    let added = 0;
    for (const end = at + count; at < end; ) {
      // Jobs with a key go one by one: each may find that another holds it.
      const together = shared.key === null && end - at >= TOGETHER ? TOGETHER : 1;
      const values = [...common];
      for (let index = at; index < at + together; index++) values.push(ids[index] as string, payloads[index] as string);
      const { changes } = session.sql(together === 1 ? INSERT_ONE : INSERT_MANY).run(...values);
      added += Number(changes);
      const holder = changes === 0 ? otherHolder(session, ids[at] as string, name, shared.key) : null;
      if (holder !== null) taken.push([at, holder]);
      at += together;
    }
    if (added === 0) continue;
    session.count(stream, name, 'enqueued', added);
    // A job for later matters too: a waiting worker must learn when it falls due.
    session.madeWork = true;
  }
  return taken;
}

function commonValues(session: Session, shared: SharedParts, stream: number, name: number): (string | number | null)[] {
  const { now, words, streams } = session;
  const dueAt = shared.dueAt ?? now + shared.delayMs;
  return [
    dueAt > now ? STATE.scheduled : STATE.ready,
    stream,
    FRESH,
    shared.priority,
    dueAt,
    now,
    name,
    words.intern(session.policyText.of(shared.policy)),
    shared.retryQueue === null ? null : streams.intern(shared.retryQueue, shared.resource),
    shared.key,
    KEY_LIFE[shared.keyLife],
  ];
}

/** Null when this very job is sent again, which changes nothing; else a live job holds its key. */
function otherHolder(session: Session, id: string, name: number, key: string | null): string | null {
  if (key === null || session.sql(HAS_ID).get(id)) return null;
  return (session.sql(HOLDER).get(name, key) as { id: string }).id;
}
