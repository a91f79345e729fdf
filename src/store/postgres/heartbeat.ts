import type { Fence, Heartbeat, HeartbeatAnswer } from '../store.ts';
import { plain, texts } from './connection/arrays.ts';
import type { Session } from './session.ts';
import { isUuid } from './uuid.ts';

const HEARTBEAT =
  'SELECT * FROM @.heartbeat($1::uuid[], $2::int[], $3::int[], $4::bigint[], $5::boolean[], $6::text[])';
const REMEMBER = 'SELECT @.remember($1, $2, $3, $4, $5)';

export async function heartbeat(session: Session, beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> {
  // A row is written once per statement, so of two beats for one run only the last is sent, and answers both.
  const byRun = new Map(beats.filter((beat) => isUuid(beat.id)).map((beat) => [runOf(beat), beat]));
  const sent = [...byRun.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const workerOf = await session.workers.find(new Set(sent.map((beat) => beat.worker)));
  const rows = await session.db.query<[ord: number, leaseEndsAt: number, cancelRequested: boolean]>(HEARTBEAT, [
    plain(sent.map((beat) => beat.id)),
    plain(sent.map((beat) => beat.run)),
    plain(sent.map((beat) => workerOf(beat.worker))),
    plain(sent.map((beat) => beat.leaseMs)),
    plain(sent.map((beat) => beat.alone ?? null)),
    texts(sent.map((beat) => beat.progress ?? null)),
  ]);
  const kept = new Map<string, HeartbeatAnswer>();
  for (const [ord, leaseEndsAt, cancelRequested] of rows) {
    kept.set(runOf(sent[ord - 1] as Heartbeat), { kept: true, leaseEndsAt, cancelRequested });
  }
  return beats.map((beat) => kept.get(runOf(beat)) ?? { kept: false });
}

function runOf({ id, run, worker }: Fence): string {
  return `${id} ${run} ${worker}`;
}

export async function remember(session: Session, fence: Fence, key: string, value: string): Promise<boolean> {
  const { id, run, worker } = fence;
  if (!isUuid(id)) return false;
  const workerOf = await session.workers.find([worker]);
  const [row] = await session.db.query<[boolean]>(REMEMBER, [id, run, workerOf(worker), key, value]);
  return (row as [boolean])[0];
}
