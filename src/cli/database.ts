import { existsSync } from 'node:fs';
import { ConfigError } from '../errors.ts';
import { Mulligan, type MulliganOptions } from '../mulligan.ts';
import { sqlitePath } from '../store/open.ts';
import { Failure, wrongUsage } from './failure.ts';

export const DEFAULT_DATABASE = 'sqlite:mulligan.db';

/** A database as it was asked for, and where that was said. */
export interface Database {
  readonly url: string;
  readonly from: '--db' | 'MULLIGAN_DB' | 'the default';
}

export function chooseDatabase(flag: string | undefined, env: NodeJS.ProcessEnv): Database {
  if (flag !== undefined) return check({ url: flag, from: '--db' });
  if (env.MULLIGAN_DB) return check({ url: env.MULLIGAN_DB, from: 'MULLIGAN_DB' });
  return { url: DEFAULT_DATABASE, from: 'the default' };
}

function check(database: Database): Database {
  const { url, from } = database;
  if (/^(memory|sqlite:(\/\/)?:memory:)/.test(url)) {
    throw wrongUsage(
      `${from}: expected a database that outlives this command, came ${JSON.stringify(url)}. Use sqlite:FILE.`,
    );
  }
  if (!url.includes(':')) {
    throw wrongUsage(`${from}: expected sqlite:FILE, came ${JSON.stringify(url)}. Did you mean sqlite:${url}?`);
  }
  return database;
}

/** What may be printed: an address of a server can hold a password. */
export function shownName({ url }: Database): string {
  return url.startsWith('sqlite:') ? url : `${url.slice(0, url.indexOf(':'))}:...`;
}

/** For commands that read and operate: a mistyped path must not leave an empty database behind. */
export async function withExisting<T>(database: Database, action: (mulligan: Mulligan) => Promise<T>): Promise<T> {
  refuseMissing(database);
  return withDatabase(database, {}, action);
}

/** For commands that begin something: the database is created when it is not there. */
export async function withDatabase<T>(
  database: Database,
  options: MulliganOptions,
  action: (mulligan: Mulligan) => Promise<T>,
): Promise<T> {
  const mulligan = await open(database, options);
  try {
    return await action(mulligan);
  } finally {
    await mulligan.close();
  }
}

async function open({ url, from }: Database, options: MulliganOptions): Promise<Mulligan> {
  try {
    return await Mulligan.open(url, options);
  } catch (error) {
    if (error instanceof ConfigError) throw wrongUsage(`${from}: ${error.message}`);
    throw error;
  }
}

function refuseMissing({ url, from }: Database): void {
  if (!url.startsWith('sqlite:')) return;
  const path = sqlitePath(url);
  if (path === '' || existsSync(path)) return;
  throw new Failure(
    'NO_DATABASE',
    `there is no database ${path} (${from}). Name another with --db sqlite:FILE or MULLIGAN_DB; ` +
      'mulligan enqueue and mulligan work create it.',
  );
}
