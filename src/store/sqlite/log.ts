import { parseRunLog, type RunLog } from '../../run-log.ts';
import type { Session } from './session.ts';

const KEEP = 'INSERT INTO run_logs (job, run, log) VALUES (?, ?, ?)';
const LOGS = 'SELECT run, log FROM run_logs WHERE job = (SELECT seq FROM jobs WHERE id = ?) ORDER BY run DESC LIMIT ?';

/** `seq`: the number of the job. */
export function keepLog(session: Session, seq: number, run: number, log: string): void {
  session.sql(KEEP).run(seq, run, log);
}

export function logs(session: Session, jobId: string, limit: number): RunLog[] {
  const rows = session.sql(LOGS).all(jobId, limit) as unknown as { run: number; log: string }[];
  return rows.map(({ run, log }) => parseRunLog(run, log));
}
