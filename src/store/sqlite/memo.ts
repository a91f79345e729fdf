import { STATE } from '../codes.ts';
import type { Fence } from '../store.ts';
import type { Session } from './session.ts';

const HOLDS = `SELECT seq FROM jobs WHERE id = ? AND state = ${STATE.running} AND runs = ? AND worker = ?`;
const REMEMBER = 'INSERT INTO memos (job, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';
const RECALL = 'SELECT key, value FROM memos WHERE job = (SELECT seq FROM jobs WHERE id = ?)';

/** The first result stored under a key stays. */
export function remember(session: Session, fence: Fence, key: string, value: string): boolean {
  const row = session.sql(HOLDS).get(fence.id, fence.run, session.strings.find(fence.worker));
  if (!row) return false;
  session.sql(REMEMBER).run((row as { seq: number }).seq, key, value);
  return true;
}

export function recall(session: Session, jobId: string): ReadonlyMap<string, string> {
  const rows = session.sql(RECALL).all(jobId) as unknown as { key: string; value: string }[];
  return new Map(rows.map((row) => [row.key, row.value]));
}
