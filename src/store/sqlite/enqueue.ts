import { keyLifeCodes, laneCodes, STATE } from '../codes.ts';
import { splitJson } from '../json.ts';
import type { PackedEnqueued, PackedNewJobs, SharedParts } from './packed-jobs.ts';
import type { Session } from './session.ts';

const INSERT = `
  INSERT INTO jobs (id, state, stream, lane, priority, due_at, available_at, enqueued_at, name, policy,
                    home_stream, retry_stream, key, key_life, held_key, payload)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, max(?6, ?7), ?7, ?8, ?9, ?3, ?10, ?11, ?12, ?11, ?13)
  ON CONFLICT DO NOTHING`;
const HAS_ID = 'SELECT 1 FROM jobs WHERE id = ?';
const HOLDER = 'SELECT id FROM jobs WHERE name = ? AND held_key = ?';

const FRESH = laneCodes.indexOf('fresh');

export function enqueue(session: Session, ...[ids, joined, runs]: PackedNewJobs): PackedEnqueued {
  const payloads = splitJson(joined);
  const taken: [index: number, holder: string][] = [];
  let at = 0;
  for (const { shared, count } of runs) {
    const insert = inserter(session, shared);
    let added = 0;
    for (const end = at + count; at < end; at++) {
      const id = ids[at] as string;
      if (insert.add(id, payloads[at] as string)) {
        added++;
        continue;
      }
      const holder = otherHolder(session, id, insert.name, shared.key);
      if (holder !== null) taken.push([at, holder]);
    }
    if (added === 0) continue;
    session.count(insert.stream, insert.name, 'enqueued', added);
    // A job for later matters too: a waiting worker must learn when it falls due.
    session.madeWork = true;
  }
  return taken;
}

interface Inserter {
  readonly stream: number;
  readonly name: number;
  /** False when it, or another job with its key, is there already. */
  add(id: string, payload: string): boolean;
}

function inserter(session: Session, shared: SharedParts): Inserter {
  const { now, words, streams } = session;
  const stream = streams.intern(shared.queue, shared.resource);
  const name = words.intern(shared.name);
  const policy = words.intern(session.policyText.of(shared.policy));
  const retryStream = shared.retryQueue === null ? null : streams.intern(shared.retryQueue, shared.resource);
  const dueAt = shared.dueAt ?? now + shared.delayMs;
  const state = dueAt > now ? STATE.scheduled : STATE.ready;
  const keyLife = keyLifeCodes.indexOf(shared.keyLife);
  const statement = session.sql(INSERT);
  const { priority, key } = shared;
  const add = (id: string, payload: string): boolean =>
    statement.run(id, state, stream, FRESH, priority, dueAt, now, name, policy, retryStream, key, keyLife, payload)
      .changes === 1;
  return { stream, name, add };
}

/** Null when this very job is sent again, which changes nothing; else a live job holds its key. */
function otherHolder(session: Session, id: string, name: number, key: string | null): string | null {
  if (key === null || session.sql(HAS_ID).get(id)) return null;
  return (session.sql(HOLDER).get(name, key) as { id: string }).id;
}
