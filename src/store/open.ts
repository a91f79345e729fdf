import type { Clock } from '../clock.ts';
import { closest, describe } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { scrubAddress } from '../untrusted/scrub.ts';
import { read } from '../untrusted/thrown.ts';
import { MemoryStore } from './memory/store.ts';
import type { Store } from './store.ts';
import { verbNames } from './verbs.ts';

const schemes = ['memory', 'sqlite', 'postgres', 'postgresql', 'http', 'https'] as const;

/** A store by its address. Each kind is loaded only when it is asked for. */
export async function openStore(target: unknown, clock: Clock, token?: string): Promise<Store> {
  const [scheme] = typeof target === 'string' ? splitOnce(target) : [''];
  if (token !== undefined && scheme !== 'http' && scheme !== 'https') {
    throw new ConfigError(
      'token: expected it together with an address such as https://HOST, got it with another store.',
    );
  }
  if (typeof target !== 'string') return checkStore(target);
  switch (scheme) {
    case 'memory':
      if (target === 'memory:' || target === 'memory') return new MemoryStore({ clock });
      throw new ConfigError(
        `expected memory: alone, got ${describe(scrubAddress(target))}. It has no name: each open is a new one.`,
      );
    case 'sqlite': {
      const path = sqlitePath(target);
      const { SqliteStore } = await import('./sqlite/store.ts');
      return SqliteStore.open({ path });
    }
    case 'postgres':
    case 'postgresql': {
      const { PostgresStore } = await import('./postgres/store.ts');
      return PostgresStore.open({ url: target });
    }
    case 'http':
    case 'https': {
      const { HttpStore } = await import('./http/store.ts');
      return HttpStore.open({ url: target, clock, ...(token !== undefined && { token }) });
    }
    default:
      throw unknownTarget(target);
  }
}

/**
 * The file of a `sqlite:` address. Two slashes more are only how some write an address: `sqlite://jobs.db` is a file
 * in this folder, as `sqlite:jobs.db` is, and `sqlite:///var/jobs.db` is absolute, as `sqlite:/var/jobs.db` is.
 */
export function sqlitePath(address: string): string {
  const [, rest] = splitOnce(address);
  const path = rest.startsWith('//') ? rest.slice(2) : rest;
  const got = `got ${describe(scrubAddress(address))}`;
  if (path === '') throw new ConfigError(`expected a file after sqlite:, ${got}. Write sqlite:jobs.db.`);
  // `user:password@host/app`: as a name of a file it would be shown wherever the file is named. A drive has a colon, too.
  if (/:.*@/s.test(path.replace(/^[a-z]:(?=[\\/])/i, '')) || /^sqlite:\/\/[^/]*@[^/]*\//.test(address)) {
    throw new ConfigError(`expected a file after sqlite:, ${got}. Write postgres:// for a server of PostgreSQL.`);
  }
  // To SQLite these are no files, and each connection would get a database of its own: what one writes, none can read.
  if (path === ':memory:' || path.startsWith('file:')) {
    throw new ConfigError(`expected a path after sqlite:, ${got}. Write sqlite:jobs.db, or memory:.`);
  }
  // SQLite opens such a name once, and then cannot find its write-ahead log again.
  if (/\p{Cc}/u.test(path)) throw new ConfigError(`expected a file name without control characters, ${got}.`);
  if (path.includes('?')) {
    throw new ConfigError(`expected a file name without "?", ${got}. There are no settings to give with a file.`);
  }
  return path;
}

function splitOnce(text: string): [string, string] {
  const colon = text.indexOf(':');
  return colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
}

const members: readonly string[] = [...verbNames, 'onWork', 'onJobs', 'close'];

function checkStore(target: unknown): Store {
  const missing = members.filter((verb) => typeof read(target, verb) !== 'function');
  if (missing.length === 0) return target as Store;
  if (missing.length === members.length) throw unknownTarget(target);
  throw new ConfigError(`expected a store with all its verbs, got ${describe(target)} without ${missing.join(', ')}.`);
}

function unknownTarget(target: unknown): ConfigError {
  const meant = typeof target === 'string' ? closest(splitOnce(target)[0], schemes) : null;
  const hint = meant === null ? 'Write sqlite:jobs.db for a file.' : `Did you mean ${meant}:?`;
  // An address may hold a password, and errors end up in logs.
  const got = describe(typeof target === 'string' ? scrubAddress(target) : target);
  return new ConfigError(
    `expected sqlite:FILE, postgres://HOST/DATABASE, https://HOST, memory: or a store, got ${got}. ${hint}`,
  );
}
