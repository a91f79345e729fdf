import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../clock.ts';
import { StoreIncompatibleError, StoreUnavailableError } from '../../errors.ts';
import { isBusy, toStoreError } from './failure.ts';
import { APPLICATION_ID, migrate, migrations, minimumReader, pragma, schemaVersion } from './schema.ts';

/** How long opening waits for other processes that are just creating the same file. */
const OPEN_PATIENCE_MS = 15_000;
const OPEN_RETRY_MS = 20;

/** What to do about a file that is not there. */
export type Missing = 'create' | 'refuse';

/** Opens a queue's file, creating or migrating it. Whatever is refused is refused before anything is written. */
export async function openDatabase(path: string, clock: Clock, missing: Missing = 'create'): Promise<DatabaseSync> {
  refuseUnsafeSqlite(process.versions.sqlite);
  refuseUnwritable(path);
  if (missing === 'create') createPrivate(path);
  let db: DatabaseSync;
  try {
    // No busy timeout: SQLite would sleep in it. A process that finds the file busy tries again (see group-commit.ts).
    const file = missing === 'create' ? path : new URL('?mode=rw', pathToFileURL(path));
    db = new DatabaseSync(file, { timeout: 0, enableForeignKeyConstraints: true });
  } catch (error) {
    throw toStoreError(error, path);
  }
  try {
    await whileBusy(clock, () => prepare(db, path));
    return db;
  } catch (error) {
    db.close();
    throw toStoreError(error, path);
  }
}

function prepare(db: DatabaseSync, path: string): void {
  refuseForeign(db, path);
  // WAL lets readers and one writer work at once; FULL makes every commit durable before it is answered. A checkpoint every
  // 16 MB and not every 4: jobs of many keys lie apart, and their pages are written once for several commits.
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA mmap_size = 0;
    PRAGMA cache_size = -32000;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
  `);
  if (schemaVersion(db) >= migrations.length) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    migrate(db);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

async function whileBusy(clock: Clock, action: () => void): Promise<void> {
  const giveUpAt = clock.monotonic() + OPEN_PATIENCE_MS;
  for (;;) {
    try {
      action();
      return;
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= giveUpAt) throw error;
      await new Promise<void>((resolve) => clock.after(OPEN_RETRY_MS * (1 + clock.random()), resolve));
    }
  }
}

/**
 * Before 3.51.3 (and but for the fixes in 3.50.7 and 3.44.6), resetting the WAL while several connections
 * write can corrupt the file.
 */
export function refuseUnsafeSqlite(version: string | undefined): void {
  const [major = 0, minor = 0, patch = 0] = (version ?? '').split('.').map(Number);
  const fixed =
    major > 3 ||
    (major === 3 &&
      (minor > 51 || (minor === 51 && patch >= 3) || (minor === 50 && patch >= 7) || (minor === 44 && patch >= 6)));
  if (fixed) return;
  throw new StoreIncompatibleError(
    `expected SQLite 3.51.3 or newer, as Node.js 22.22.3 and 24.15 bring it; this is Node.js ${process.versions.node} with ` +
      `SQLite ${version || 'none'}, which can corrupt a file that several processes write. Use a newer Node.js, for example the latest 24.`,
  );
}

/** A user who may read the file reads all payloads. */
const OWNER_ONLY = 0o600;

/**
 * SQLite would create the file with what the umask leaves, 0644 mostly. It gives the files beside it the mode of the file. One that is
 * there is not opened: to close it again would end the locks of all connections that this process has to it.
 */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw toStoreError(error, path);
  }
}

function refuseUnwritable(path: string): void {
  const folder = dirname(path);
  try {
    if (!statSync(folder).isDirectory()) throw new Error('not a folder');
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new StoreUnavailableError(
      `${path}: expected a folder that exists and can be written, but ${folder} cannot (${(error as Error).message}); ` +
        'SQLite keeps its write-ahead log beside the file',
    );
  }
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isFile()) {
    const what = found.isDirectory() ? 'a folder' : 'something that is none';
    throw new StoreUnavailableError(`${path}: expected a file, found ${what}; give the path of a file`);
  }
  try {
    // SQLite would open it for reading only, and stay so when it can be written again.
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new StoreUnavailableError(
      `${path}: expected a file that can be written, but it is read-only (${(error as Error).message}); make it writable`,
    );
  }
}

/** Reads before it writes: another program's database, or one that only a newer Mulligan can use, is left as it is. */
export function refuseForeign(db: DatabaseSync, path: string): void {
  const { version, owner, tables, minimum } = identify(db);
  const isNew = owner === 0 && version === 0 && tables === 0;
  if (owner !== APPLICATION_ID && !isNew) {
    throw new StoreIncompatibleError(
      `${path}: expected a Mulligan database or no file, found another program's database; it was left as it is. Give the queue a file of its own.`,
    );
  }
  if (version > migrations.length && minimum > migrations.length) {
    throw new StoreIncompatibleError(
      `${path}: expected a file for schema version ${migrations.length}, found version ${version}, which an older Mulligan cannot use: ` +
        'it was made by a newer one and was left as it is. Upgrade this process.',
    );
  }
}

/** In one transaction: between two reads another process may make the schema, and half of it looks like a foreign one. */
function identify(db: DatabaseSync): { version: number; owner: number; tables: number; minimum: number } {
  db.exec('BEGIN');
  try {
    const { n } = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number };
    const owner = pragma(db, 'application_id');
    const minimum = owner === APPLICATION_ID ? minimumReader(db) : 0;
    return { version: schemaVersion(db), owner, tables: n, minimum };
  } finally {
    db.exec('ROLLBACK');
  }
}
