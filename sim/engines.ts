import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/clock.ts';
import { MemoryStore } from '../src/store/memory/store.ts';
import { Database } from '../src/store/postgres/connection/database.ts';
import { connect } from '../src/store/postgres/connection/hosts.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import type { Store } from '../src/store/store.ts';
import type { SimProcess } from './scheduler.ts';

export type OpenEngine = (machine: SimProcess) => Promise<Store>;

/** A kind of store to simulate on: makes place for one run, and clears it away. */
export interface Engine {
  readonly name: string;
  run<Result>(use: (open: OpenEngine) => Promise<Result>): Promise<Result>;
}

export const memory: Engine = {
  name: 'memory',
  run: (use) => use(async (machine) => new MemoryStore({ clock: machine.clock })),
};

/** A real file, in the simulator's thread and on its clock. */
export const sqlite: Engine = {
  name: 'sqlite',
  async run(use) {
    const folder = await mkdtemp(join(tmpdir(), 'mulligan-sim-'));
    try {
      return await use((machine) => SqliteStore.open({ path: join(folder, 'jobs.db'), inline: machine.clock }));
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

/** A real server, whose time is the simulation's. While it works, nothing else happens. */
export function postgres(url: string): Engine {
  const schema = `simulation_${process.pid}`;
  return {
    name: 'postgres',
    async run(use) {
      const { hosts } = await connect({ url, poolOptions: { max: 3 } });
      const db = new Database(hosts, schema, systemClock);
      const clear = (): Promise<unknown> => db.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      try {
        await clear();
        return await use((machine) => openPostgres(url, db, machine));
      } finally {
        await clear();
        await db.close();
      }
    },
  };
}

async function openPostgres(url: string, db: Database, machine: SimProcess): Promise<Store> {
  const { clock, scheduler } = machine;
  const store = await PostgresStore.open({ url, schema: db.schema, clock, wakeUps: false });
  await db.query('CREATE TABLE @.simulated (now bigint)');
  await db.query('INSERT INTO @.simulated VALUES ($1)', [clock.now()]);
  await db.query(`CREATE OR REPLACE FUNCTION @.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT now FROM @.simulated $$`);
  const inSimulatedTime = async (call: () => Promise<unknown>): Promise<unknown> => {
    await db.query('UPDATE @.simulated SET now = $1', [clock.now()]);
    return call();
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      const verb = (member as (...args: unknown[]) => Promise<unknown>).bind(target);
      if (name === 'onWork' || name === 'close') return verb;
      return (...args: unknown[]) => scheduler.waitFor(inSimulatedTime(() => verb(...args)));
    },
  });
}
