import { statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../clock.ts';
import { STATE } from '../../store/codes.ts';
import { sqlitePath } from '../../store/open.ts';
import { isDamaged } from '../../store/sqlite/failure.ts';
import { openDatabase, refuseUnsafeSqlite } from '../../store/sqlite/open.ts';
import { APPLICATION_ID, migrations, minimumReader, pragma, schemaVersion } from '../../store/sqlite/schema.ts';
import { type Database, withExisting } from '../database.ts';
import { bad, type Check, look, ok, warn, worst } from './check.ts';
import { type JobTimes, jobChecks, type StoredWaitingJobs } from './jobs.ts';
import { size } from './words.ts';

const LARGE_LOG = 256_000_000;
const MUCH_FREE = 100_000_000;
const LITTLE_ROOM = 500_000_000;
const NO_ROOM = 10_000_000;
/** A busy queue gives its lock away many times a second. */
const LOCK_TIMEOUT_MS = 5_000;
const FULL = 2;

export async function examineSqlite(database: Database, known: ReadonlySet<string> | null): Promise<Check[]> {
  const path = resolve(sqlitePath(database.url));
  const { checks, times } = await readOnly(path);
  // Opening would migrate it, or refuse it.
  if (times === null) return checks;
  return [
    ...checks,
    ...(await look('writing', () => writing(path))),
    ...(await look('jobs', () => withExisting(database, (mulligan) => jobChecks(mulligan, times, known)))),
  ];
}

interface Looked {
  readonly checks: Check[];
  /** Null for a file that is not of this version. */
  readonly times: JobTimes | null;
}

/** Changes nothing about the file, whatever is wrong with it. */
async function readOnly(path: string): Promise<Looked> {
  const around = [...(await look('sqlite', async () => sqlite())), ...(await look('disk', async () => disk(path)))];
  let db: DatabaseSync;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT_MS });
  } catch (error) {
    const found = `${path} cannot be opened: ${(error as Error).message}`;
    return { checks: [...around, bad('file', found, 'see that it can be read')], times: null };
  }
  try {
    const identity = await look('schema', async () => schema(db));
    // All other checks would report the same.
    if (worst(identity) === 'bad') return { checks: [...around, ...identity], times: null };
    const checks = [
      ...around,
      ...identity,
      ...(await look('journal', async () => journal(db))),
      ...(await look('size', async () => sizes(db, path))),
      ...(await look('integrity', async () => integrity(db))),
    ];
    return { checks, times: worst(checks) === 'bad' || worst(identity) !== 'ok' ? null : jobTimes(db) };
  } finally {
    db.close();
  }
}

function sqlite(): Check {
  const { sqlite: version, node } = process.versions;
  refuseUnsafeSqlite(version);
  return ok('sqlite', `SQLite ${version}, in Node.js ${node}`);
}

function disk(path: string): Check {
  const { bavail, bsize } = statfsSync(dirname(path));
  const free = bavail * bsize;
  const found = `${size(free)} free`;
  if (free >= LITTLE_ROOM) return ok('disk', found);
  return (free < NO_ROOM ? bad : warn)('disk', found, 'free some space: on a full disk nothing can be recorded');
}

function schema(db: DatabaseSync): Check {
  const name = 'schema';
  const version = schemaVersion(db);
  if (pragma(db, 'application_id') !== APPLICATION_ID) {
    return bad(name, 'this is not a file of Mulligan', 'name another one with --db');
  }
  if (version === migrations.length) return ok(name, `version ${version}`);
  const found = `version ${version}, this program knows ${migrations.length}`;
  if (version > migrations.length) {
    return minimumReader(db) <= migrations.length
      ? ok(name, `${found}, and can work with it`)
      : bad(name, found, 'update mulligan here: a newer one made this file');
  }
  return warn(name, found, 'it is migrated when it is next opened; take a backup first');
}

function journal(db: DatabaseSync): Check {
  const mode = String(pragma(db, 'journal_mode'));
  if (mode === 'wal') return ok('journal', 'write-ahead log');
  return warn(
    'journal',
    `mode ${mode}, expected wal`,
    'it is set when Mulligan next opens the file; make sure that no other program does',
  );
}

function sizes(db: DatabaseSync, path: string): Check {
  const bytes = statSync(path).size;
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const free = pragma(db, 'freelist_count') * pragma(db, 'page_size');
  const found = `${size(bytes)}, of which ${size(free)} are free; write-ahead log ${size(log)}`;
  if (log > LARGE_LOG) {
    return warn('size', found, 'a long read keeps the log from being taken in: look for a backup tool or a shell');
  }
  if (free > MUCH_FREE && free > bytes / 2) {
    return warn('size', found, 'the space is used again; to give it back, stop all processes and run VACUUM');
  }
  return ok('size', found);
}

function integrity(db: DatabaseSync): Check {
  const said = quickCheck(db);
  if (said === 'ok') return ok('integrity', 'quick_check found nothing');
  return bad(
    'integrity',
    said,
    'the file is damaged: stop all processes and restore a backup, or save what can be read with .recover of the sqlite3 shell',
  );
}

function quickCheck(db: DatabaseSync): string {
  try {
    const rows = db.prepare('PRAGMA quick_check(5)').all() as { quick_check: string }[];
    return rows.map(({ quick_check }) => quick_check).join('; ');
  } catch (error) {
    // Too damaged to be looked through.
    if (isDamaged(error)) return (error as Error).message;
    throw error;
  }
}

/** As a process of the queue opens it: this also sees that the folder can be written, as the log needs it. */
async function writing(path: string): Promise<Check> {
  const name = 'writing';
  const db = await openDatabase(path, systemClock, 'refuse');
  try {
    const synchronous = pragma(db, 'synchronous');
    if (synchronous < FULL) return bad(name, `synchronous is ${synchronous}, expected FULL`, 'report this as a bug');
    db.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}; BEGIN IMMEDIATE; ROLLBACK;`);
    return ok(name, 'possible; synchronous is FULL, so a commit is on disk when it is answered');
  } catch (error) {
    const found = `no turn to write within ${LOCK_TIMEOUT_MS / 1_000} s (${(error as Error).message})`;
    return warn(name, found, 'look for a long transaction: a backup tool, a shell, a VACUUM');
  } finally {
    db.close();
  }
}

function jobTimes(db: DatabaseSync): JobTimes {
  const now = systemClock.now();
  const waiting = db
    .prepare(
      `SELECT q.text AS queue, n.text AS name, sum(jobs) AS count, sum(due) AS due, min(due_at) AS oldestDueAt, r.text AS gate
       FROM (
         SELECT p.queue, j.name, count(*) AS jobs, count(*) FILTER (WHERE j.due_at <= ?1) AS due, min(j.due_at) AS due_at,
           CASE WHEN p.gate_at IS NOT NULL OR (p.held_until > ?1 AND p.waits_for IS NULL) THEN p.resource END AS gate
         FROM jobs j JOIN partitions p ON p.id = j.partition WHERE j.partition IS NOT NULL GROUP BY p.id, j.name
       ) w JOIN strings q ON q.id = w.queue JOIN strings n ON n.id = w.name LEFT JOIN strings r ON r.id = w.gate
       GROUP BY q.text, n.text, r.text`,
    )
    .all(now) as unknown as StoredWaitingJobs[];
  const leases = db
    .prepare(
      `SELECT count(*) AS n, min(lease_ends_at) AS at FROM jobs
       WHERE state = ${STATE.running} AND lease_ends_at <= ?`,
    )
    .get(now) as { n: number; at: number | null };
  return {
    now,
    waiting,
    expiredLeases: leases.n,
    oldestLeaseEndedAt: leases.at,
  };
}
