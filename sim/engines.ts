import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { systemClock } from '../src/clock.ts';
import { MemoryStore } from '../src/store/memory/store.ts';
import { connect } from '../src/store/postgres/connection/connect.ts';
import { Database } from '../src/store/postgres/connection/database.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import type { Store } from '../src/store/store.ts';
import { InterleavedPool } from './interleaved-pool.ts';
import type { SimProcess } from './scheduler.ts';

/** A store on the simulated machine. Where each process has a connection of its own, `forProcess` answers that. */
export interface SimStore extends Store {
  forProcess?(name: string): Store;
}

/** `isHealthy`: whether faults are over, so that nothing is slow any more. */
export type OpenEngine = (machine: SimProcess, isHealthy: () => boolean) => Promise<SimStore>;

/** A kind of store to simulate on: makes place for one run, and clears it away. */
export interface Engine {
  readonly name: string;
  /** Calls overlap: each takes effect at some moment between its start and its answer. */
  readonly interleaved?: boolean;
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
  return postgresEngine('postgres', url, async ({ store, db, machine }) => {
    const { scheduler } = machine;
    return verbsOf(store, (call) => scheduler.waitFor(tellTime(db, machine).then(call)));
  });
}

/** How many stores the processes share: each has a scan cursor and interned strings of its own. */
const STORES = 3;
/** The longest that a transaction stays open, in virtual time; a run picks one. */
const LATEST_COMMIT_MS = [0, 30, 300, 2_500];

export interface InterleavedEngine extends Engine {
  /** In all runs so far: statements that started while a transaction was open, and waits for a lock. */
  readonly seen: { overlaps: number; lockWaits: number };
}

/** A real server on which statements of several processes overlap, and transactions commit late. */
export function interleavedPostgres(url: string): InterleavedEngine {
  const seen = { overlaps: 0, lockWaits: 0 };
  const engine = postgresEngine('postgres-interleaved', url, (opened) => openInterleaved(opened, seen));
  return { ...engine, interleaved: true, seen };
}

interface Opened {
  readonly store: PostgresStore;
  readonly url: string;
  readonly db: Database;
  readonly machine: SimProcess;
  isHealthy(): boolean;
}

async function openInterleaved(
  { store, url, db, machine, isHealthy }: Opened,
  seen: InterleavedEngine['seen'],
): Promise<SimStore> {
  const { random } = machine.scheduler;
  const latestMs = random.pick(LATEST_COMMIT_MS);
  const upTo = (mostMs: number): number => (isHealthy() || random.chance(0.4) ? 0 : random.next() * mostMs);
  const delays = { statementMs: () => upTo(10), commitMs: () => upTo(latestMs) };
  // Deadlocks are the server's to resolve, soon: while it waits, so does the simulation.
  const driver = new pg.Pool({ connectionString: url, max: 50, options: '-c deadlock_timeout=20ms' });
  const pool = new InterleavedPool(driver, machine, delays, () => tellTime(db, machine));
  const options = { pool, schema: db.schema, clock: machine.clock, wakeUps: false, migrate: false };
  const stores = await Promise.all(Array.from({ length: STORES }, () => PostgresStore.open(options)));
  pool.start();
  const direct = verbsOf(store, (call) => machine.scheduler.waitFor(tellTime(db, machine).then(call)));
  const close = async (): Promise<void> => {
    pool.stop();
    await Promise.all(stores.map((one) => one.close()));
    await driver.end();
    await store.close();
    seen.overlaps += pool.overlaps;
    seen.lockWaits += pool.lockWaits;
  };
  const forProcess = (name: string): Store => stores[Number(/\d+$/.exec(name)?.[0] ?? 0) % STORES] as Store;
  return new Proxy(direct as SimStore, {
    get: (target, name: keyof SimStore) =>
      name === 'close' ? close : name === 'forProcess' ? forProcess : target[name],
  });
}

function postgresEngine(name: string, url: string, prepare: (opened: Opened) => Promise<SimStore>): Engine {
  const schema = `simulation_${process.pid}`;
  return {
    name,
    async run(use) {
      const { hosts } = await connect({ url, poolOptions: { max: 3 } });
      const db = new Database(hosts, schema, systemClock);
      const clear = (): Promise<unknown> => db.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      try {
        await clear();
        return await use(async (machine, isHealthy) => {
          const store = await PostgresStore.open({ url, schema, clock: machine.clock, wakeUps: false });
          await db.query('CREATE TABLE @.simulated (now bigint)');
          await db.query('INSERT INTO @.simulated VALUES ($1)', [machine.clock.now()]);
          await db.query(`CREATE OR REPLACE FUNCTION @.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
            AS $$ SELECT now FROM @.simulated $$`);
          return prepare({ store, url, db, machine, isHealthy });
        });
      } finally {
        await clear();
        await db.close();
      }
    },
  };
}

function tellTime(db: Database, { clock }: SimProcess): Promise<unknown> {
  return db.query('UPDATE @.simulated SET now = $1', [clock.now()]);
}

/** The same store, each of whose verbs goes through `carryOut`. */
function verbsOf(store: Store, carryOut: (call: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      const verb = (member as (...args: unknown[]) => Promise<unknown>).bind(target);
      if (name === 'onWork' || name === 'onJobs' || name === 'close') return verb;
      return (...args: unknown[]) => carryOut(() => verb(...args));
    },
  });
}
