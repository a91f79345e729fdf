import { FORGOTTEN_AFTER_MS, type RegisteredWorker, registeredWorker, type WorkerDescription } from '../workers.ts';
import type { Session } from './session.ts';

const SEEN = `
  INSERT INTO worker_registry (id, started_at, seen_at, description) VALUES (:id, :now, :now, :description)
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, description = excluded.description`;
const GONE = 'DELETE FROM worker_registry WHERE id = ?';
const FORGET = 'DELETE FROM worker_registry WHERE seen_at <= ?';
const LIST = 'SELECT id, started_at, seen_at, description FROM worker_registry ORDER BY started_at, id';

interface Row {
  readonly id: string;
  readonly started_at: number;
  readonly seen_at: number;
  readonly description: string;
}

export function register(session: Session, id: string, worker: WorkerDescription | null): void {
  const { now } = session;
  if (worker === null) session.sql(GONE).run(id);
  else session.sql(SEEN).run({ id, now, description: JSON.stringify(worker) });
  session.sql(FORGET).run(now - FORGOTTEN_AFTER_MS);
}

export function workers(session: Session): RegisteredWorker[] {
  const rows = session.sql(LIST).all() as unknown as Row[];
  return rows.map(({ id, started_at, seen_at, description }) =>
    registeredWorker(id, description, started_at, seen_at, session.now),
  );
}
