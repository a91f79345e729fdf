import { type RegisteredWorker, registeredWorker, type WorkerDescription } from '../workers.ts';
import type { Session } from './session.ts';

const LIST = `
  SELECT id, description, started_at, seen_at, @.now_ms() FROM @.worker_registry ORDER BY started_at, id COLLATE "C"`;

export async function register({ db }: Session, id: string, worker: WorkerDescription | null): Promise<void> {
  await db.query('SELECT @.register_worker($1, $2)', [id, worker === null ? null : JSON.stringify(worker)]);
}

export async function workers({ db }: Session): Promise<RegisteredWorker[]> {
  const rows = await db.read<[id: string, description: string, startedAt: number, seenAt: number, now: number]>(LIST);
  return rows.map((row) => registeredWorker(...row));
}
