import type { Clock } from '../clock.ts';
import { closest, describe } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { MemoryStore } from './memory/store.ts';
import type { Store } from './store.ts';

const schemes = ['memory', 'sqlite'] as const;

/** A store by its address. Each kind is loaded only when it is asked for. */
export async function openStore(target: unknown, clock: Clock): Promise<Store> {
  if (isStore(target)) return target;
  if (typeof target !== 'string') throw unknownTarget(target);
  const [scheme = '', rest = ''] = splitOnce(target);
  switch (scheme) {
    case 'memory':
      return new MemoryStore({ clock });
    case 'sqlite': {
      if (rest === '')
        throw new ConfigError(`expected a file after sqlite:, came ${describe(target)}. Write sqlite:jobs.db.`);
      const { SqliteStore } = await import('./sqlite/store.ts');
      return SqliteStore.open({ path: rest });
    }
    default:
      throw unknownTarget(target);
  }
}

function splitOnce(text: string): [string, string] {
  const colon = text.indexOf(':');
  return colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
}

function isStore(target: unknown): target is Store {
  return typeof target === 'object' && target !== null && typeof (target as Store).claim === 'function';
}

function unknownTarget(target: unknown): ConfigError {
  const meant = typeof target === 'string' ? closest(splitOnce(target)[0], schemes) : null;
  const hint = meant === null ? 'Write sqlite:jobs.db for a file.' : `Did you mean ${meant}:?`;
  return new ConfigError(`expected sqlite:FILE, memory: or a store, came ${describe(target)}. ${hint}`);
}
