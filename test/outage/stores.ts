import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';
import { type Clock, Mulligan } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { HttpStore } from '../../src/store/http/store.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { newSchema, runSql } from '../support/postgres-schema.ts';

/*
 * Every store on virtual time, for real workers: also those whose answers come from another process. Time moves in steps, and
 * no step begins before the calls of the one before are answered.
 */

export interface VirtualStore extends AsyncDisposable {
  readonly store: Store;
  readonly clock: VirtualClock;
  advance(ms: number): Promise<void>;
}

const STEP_MS = 100;

/** What a kind of store needs; `timeIs` tells a store of another process what time it is. */
interface Opened {
  readonly store: Store;
  readonly timeIs?: (now: number) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

const openers: Readonly<Record<string, (clock: VirtualClock) => Promise<Opened>>> = {
  async memory(clock) {
    const store = new MemoryStore({ clock });
    return { store, close: () => store.close() };
  },
  async SQLite(clock) {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const store = await SqliteStore.open({ path: join(folder, 'jobs.db'), inline: clock });
    const close = async (): Promise<void> => {
      await store.close();
      rmSync(folder, { recursive: true });
    };
    return { store, close };
  },
  async PostgreSQL(clock) {
    const url = inject('postgresUrl');
    const schema = newSchema();
    const store = await PostgresStore.open({ url, schema });
    await runSql(
      url,
      `CREATE TABLE ${schema}.test_time AS SELECT ${Math.floor(clock.now())}::bigint AS now;
       CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
       AS $$ SELECT now FROM ${schema}.test_time $$`,
    );
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const close = async (): Promise<void> => {
      await store.close();
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    };
    return { store, timeIs: (now) => client.query(`UPDATE ${schema}.test_time SET now = $1`, [now]), close };
  },
  async HTTP(clock) {
    // The server says what time it is in whole milliseconds; timers of the workers may fire in between.
    const whole: Clock = {
      now: () => Math.floor(clock.now()),
      monotonic: () => clock.monotonic(),
      random: () => clock.random(),
      newId: () => clock.newId(),
      after: (delayMs, action) => clock.after(delayMs, action),
    };
    const mulligan = await Mulligan.open(new MemoryStore({ clock: whole }), { log: () => {} });
    const server = await serve(mulligan, { port: 0, chores: false });
    const store = await HttpStore.open({ url: server.url });
    const close = async (): Promise<void> => {
      await store.close();
      await server.close();
      await mulligan.close();
    };
    return { store, close };
  },
};

export const storeKinds: readonly string[] = Object.keys(openers);

export async function openVirtual(kind: string): Promise<VirtualStore> {
  const clock = new VirtualClock();
  const opened = await openers[kind]?.(clock);
  if (opened === undefined) throw new Error(`expected one of ${storeKinds.join(', ')}, got ${kind}`);
  const calls = new Calls();
  const settle = async (): Promise<void> => {
    // What an answer leads to may be another call.
    do {
      await turn();
      await clock.advance(0);
    } while (calls.underWay > 0);
  };
  const advance = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= STEP_MS) {
      const step = Math.min(left, STEP_MS);
      await opened.timeIs?.(Math.floor(clock.now() + step));
      await clock.advance(step);
      await settle();
    }
  };
  return {
    store: calls.counted(opened.store),
    clock,
    advance,
    async [Symbol.asyncDispose]() {
      await opened.close();
    },
  };
}

/** Counts the calls of a store that are not answered yet. */
class Calls {
  underWay = 0;

  counted(store: Store): Store {
    return new Proxy(store, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const answer: unknown = value.apply(target, args);
          if (!(answer instanceof Promise)) return answer;
          this.underWay++;
          return answer.finally(() => this.underWay--);
        };
      },
    });
  }
}
