import { closeSync, existsSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../clock.ts';
import { printable } from '../printable.ts';
import { sqlitePath } from '../store/open.ts';
import { isPostgresUrl } from '../store/postgres/connection/address.ts';
import { toStoreError } from '../store/sqlite/failure.ts';
import { refuseForeign, refuseUnsafeSqlite } from '../store/sqlite/open.ts';
import { APPLICATION_ID, pragma } from '../store/sqlite/schema.ts';
import type { CliCommand, Shell } from './command.ts';
import { type Database, refuseMissing } from './database.ts';
import { size } from './doctor/words.ts';
import { Failure, wrongUsage } from './failure.ts';
import { span } from './time.ts';

/** A busy queue gives its lock away many times a second. */
const LOCK_TIMEOUT_MS = 10_000;

interface Backup {
  readonly file: string;
  readonly bytes: number;
  readonly jobs: number;
  readonly durationMs: number;
}

export function addBackup(program: CliCommand, shell: Shell): void {
  program
    .command('backup')
    .description('Copy a SQLite queue to another file, while processes work on it.')
    .argument('<file>', 'where the copy goes, also as sqlite:FILE; it must not exist')
    .addHelpText(
      'after',
      '\nThe copy is the queue as it was at one moment, checked and on disk when this ends; free space is left out. To restore\nit, stop all processes first: docs/operations.md. PostgreSQL has pg_dump.\nWith --json: { file, bytes, jobs, durationMs }.',
    )
    .action((file: string) => run(shell, file.startsWith('sqlite:') ? sqlitePath(file) : file));
}

function run({ output, ...shell }: Shell, file: string): void {
  const database = shell.database();
  const path = sourceOf(database);
  if (existsSync(file))
    throw wrongUsage(`expected a file that does not exist, got ${file}. Name another, or remove it.`);
  const folder = dirname(resolve(file));
  if (!existsSync(folder))
    throw wrongUsage(`expected a file in a folder that exists, got ${file}. Make ${folder} first.`);
  const done = backUp(path, file);
  output.answer(done, () => [
    `${printable(path)} -> ${printable(file)}: ${done.jobs.toLocaleString('en-US')} jobs, ${size(done.bytes)}, checked, in ${span(done.durationMs)}.`,
  ]);
}

function sourceOf(database: Database): string {
  const { url, from } = database;
  if (isPostgresUrl(url)) {
    throw wrongUsage(
      `${from}: expected sqlite:FILE, got a PostgreSQL database. Back it up with pg_dump: see docs/postgres.md#backups.`,
    );
  }
  if (!url.startsWith('sqlite:')) throw wrongUsage(`${from}: expected sqlite:FILE. Run this where the database is.`);
  refuseMissing(database);
  return sqlitePath(url);
}

/** Under another name first: what has the name that was asked for is whole, also when this is killed half-way. */
function backUp(path: string, file: string): Backup {
  refuseUnsafeSqlite(process.versions.sqlite);
  const startedAt = systemClock.monotonic();
  const partial = `${resolve(file)}.partial`;
  rmSync(partial, { force: true });
  try {
    createLike(path, partial);
    copy(path, partial);
    const jobs = check(partial);
    sync(partial);
    renameSync(partial, file);
    sync(dirname(resolve(file)));
    return { file, bytes: statSync(file).size, jobs, durationMs: systemClock.monotonic() - startedAt };
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** An empty file with the mode of another one, before anything is in it that only some may read. */
function createLike(path: string, file: string): void {
  const mode = statSync(path).mode & 0o777;
  const handle = openSync(file, 'wx', mode);
  try {
    // What the umask took away.
    fchmodSync(handle, mode);
  } finally {
    closeSync(handle);
  }
}

/** In one read transaction: writers go on meanwhile, and their write-ahead log is not cut until this ends. */
function copy(path: string, to: string): void {
  const db = new DatabaseSync(path, { readOnly: true, timeout: LOCK_TIMEOUT_MS });
  try {
    refuseForeign(db, path);
    if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Failure('NO_DATABASE', `${path}: it is empty.`);
    db.prepare('VACUUM INTO ?').run(to);
  } catch (error) {
    throw error instanceof Failure ? error : toStoreError(error, path);
  } finally {
    db.close();
  }
}

/** How many jobs the copy has. */
function check(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const [found] = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {});
    if (found !== 'ok') throw new Failure('NOT_DONE', `the copy is damaged: ${String(found)}. Run mulligan doctor.`);
    return (db.prepare('SELECT count(*) AS n FROM jobs').get() as { n: number }).n;
  } finally {
    db.close();
  }
}

function sync(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
