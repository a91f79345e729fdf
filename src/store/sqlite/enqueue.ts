import { keyLifeCodes, laneCodes, STATE } from '../codes.ts';
import type { Enqueued, NewJob } from '../store.ts';
import { type PackedEnqueued, type PackedNewJobs, packEnqueued, unpackNewJobs } from './packed-jobs.ts';
import type { Session } from './session.ts';

const INSERT = `
  INSERT INTO jobs (id, state, stream, lane, priority, due_at, available_at, enqueued_at, name, policy,
                    home_stream, retry_stream, key, key_life, held_key, payload)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, max(?6, ?7), ?7, ?8, ?9, ?3, ?10, ?11, ?12, ?11, ?13)
  ON CONFLICT DO NOTHING`;
const HAS_ID = 'SELECT 1 FROM jobs WHERE id = ?';
const HOLDER = 'SELECT id FROM jobs WHERE name = ? AND held_key = ?';

const FRESH = laneCodes.indexOf('fresh');

export function enqueue(session: Session, ...jobs: PackedNewJobs): PackedEnqueued {
  return packEnqueued(unpackNewJobs(jobs).map((job) => enqueueOne(session, job)));
}

function enqueueOne(session: Session, job: NewJob): Enqueued {
  const { now, words, streams } = session;
  const stream = streams.intern(job.queue, job.resource);
  const name = words.intern(job.name);
  const dueAt = job.dueAt ?? now + job.delayMs;
  const { changes } = session
    .sql(INSERT)
    .run(
      job.id,
      dueAt > now ? STATE.scheduled : STATE.ready,
      stream,
      FRESH,
      job.priority,
      dueAt,
      now,
      name,
      words.intern(session.policyText.of(job.policy)),
      job.retryQueue === null ? null : streams.intern(job.retryQueue, job.resource),
      job.key,
      keyLifeCodes.indexOf(job.keyLife),
      job.payload,
    );
  if (changes === 0) return conflict(session, job, name);
  session.count(stream, name, 'enqueued');
  // A job for later matters too: a waiting worker must learn when it falls due.
  session.madeWork = true;
  return { id: job.id, existed: false };
}

/** Either this very job is sent again, which changes nothing, or a live job holds its key. */
function conflict(session: Session, job: NewJob, name: number): Enqueued {
  if (job.key !== null && !session.sql(HAS_ID).get(job.id)) {
    const holder = session.sql(HOLDER).get(name, job.key) as { id: string };
    return { id: holder.id, existed: true };
  }
  return { id: job.id, existed: false };
}
