import { existsSync } from 'node:fs';
import { closest, describe } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { Mulligan, type MulliganOptions } from '../mulligan.ts';
import { sqlitePath } from '../store/open.ts';
import { isPostgresUrl, parseAddress } from '../store/postgres/connection/address.ts';
import { scrubAddress } from '../untrusted/scrub.ts';
import { Failure, wrongUsage } from './failure.ts';

export const DEFAULT_DATABASE = 'sqlite:mulligan.db';
export const KINDS = 'sqlite:FILE, postgres://HOST/DATABASE or https://HOST';

/** A database as the user named it, and where. */
export interface Database {
  readonly url: string;
  readonly from: '--db' | 'MULLIGAN_DB' | 'the default';
  /** For a server: what MULLIGAN_TOKEN holds. An option would show it to everyone who lists processes. */
  readonly token?: string;
}

export function chooseDatabase(flag: string | undefined, env: NodeJS.ProcessEnv): Database {
  const token = env.MULLIGAN_TOKEN ? { token: env.MULLIGAN_TOKEN } : {};
  if (flag !== undefined) return check({ url: flag, from: '--db', ...token });
  if (env.MULLIGAN_DB) return check({ url: env.MULLIGAN_DB, from: 'MULLIGAN_DB', ...token });
  return { url: DEFAULT_DATABASE, from: 'the default' };
}

function check(database: Database): Database {
  const { url, from } = database;
  // Scrubbed before it is shortened: half a password is a secret too.
  const got = describe(scrubAddress(url));
  if (/^(memory|sqlite:(\/\/)?:memory:)/.test(url)) {
    throw wrongUsage(`${from}: expected a database that outlives this command, got ${got}. Use ${KINDS}.`);
  }
  if (/^(sqlite|postgres(ql)?|https?):/.test(url)) return database;
  const [scheme = '', ...rest] = url.split(':');
  const meant = rest.length === 0 ? `sqlite:${url}` : closest(`${scheme}:`, ['sqlite:', 'postgres:', 'https:']);
  const hint = meant === null ? '' : ` Did you mean ${meant}?`;
  throw wrongUsage(`${from}: expected ${KINDS}, got ${got}.${hint}`);
}

/** What may be printed: an address of a server can hold a password. */
export function shownName({ url }: Database): string {
  return isPostgresUrl(url) ? parseAddress(url).name : url;
}

/** For commands that read and operate: a mistyped path or schema must not leave an empty database behind. */
export async function withExisting<T>(
  database: Database,
  action: (mulligan: Mulligan) => Promise<T>,
  options: MulliganOptions = {},
): Promise<T> {
  refuseMissing(database);
  return closingAfter(await naming(database, () => openExisting(database.url, withToken(database, options))), action);
}

/** For commands that start something: creates the database when there is none. */
export async function withDatabase<T>(
  database: Database,
  options: MulliganOptions,
  action: (mulligan: Mulligan) => Promise<T>,
): Promise<T> {
  return closingAfter(await naming(database, () => Mulligan.open(database.url, withToken(database, options))), action);
}

/** Whether the database is behind a server of Mulligan. */
export function isServer({ url }: Pick<Database, 'url'>): boolean {
  return /^https?:/.test(url);
}

function withToken({ url, token }: Database, options: MulliganOptions): MulliganOptions {
  return token !== undefined && isServer({ url }) ? { ...options, token } : options;
}

async function closingAfter<T>(mulligan: Mulligan, action: (mulligan: Mulligan) => Promise<T>): Promise<T> {
  try {
    return await action(mulligan);
  } finally {
    await mulligan.close();
  }
}

/** A command that reads must not change the schema under processes of another version: `migrate` does that. */
async function openExisting(url: string, options: MulliganOptions): Promise<Mulligan> {
  if (!isPostgresUrl(url)) return Mulligan.open(url, options);
  const { PostgresStore } = await import('../store/postgres/store.ts');
  return Mulligan.open(await PostgresStore.open({ url, migrate: false }), options);
}

/** Adds the option that gave the address to errors about it. */
export async function naming<T>({ from }: Database, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof ConfigError) {
      const [, about] = /^Mulligan\.open: (tracing: .*)$/s.exec(error.message) ?? [];
      throw wrongUsage(about === undefined ? `${from}: ${error.message}` : `--${about}`);
    }
    throw error;
  }
}

export function refuseMissing({ url, from }: Database): void {
  if (!url.startsWith('sqlite:')) return;
  const path = sqlitePath(url);
  if (path === '' || existsSync(path)) return;
  throw new Failure(
    'NO_DATABASE',
    `there is no database ${path} (${from}). Name another with --db or MULLIGAN_DB, ${KINDS}; ` +
      'mulligan enqueue and mulligan work create it.',
  );
}
