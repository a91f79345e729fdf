import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { sleep, wall } from '../harness/measure.ts';
import type { Servers, Usage } from '../harness/peer.ts';

/** Why PostgreSQL is not there; null when it is. */
export function noPostgres({ postgres }: Servers): string | null {
  return 'reason' in postgres ? postgres.reason : null;
}

/** How long sessions that are ending are waited for. */
const LAST_SESSIONS_MS = 3_000;

/** One database per space, and a connection for what is not measured: fill, count, ANALYZE. */
export class Database {
  readonly url: string;
  readonly #admin: string;
  readonly #name: string;
  #client: pg.Client | undefined;

  constructor({ postgres }: Servers, space: string) {
    if ('reason' in postgres) throw new Error(postgres.reason);
    this.#name = space;
    this.#admin = `${postgres.url}/postgres`;
    this.url = `${postgres.url}/${space}`;
  }

  /** An empty database in the place of the old one. */
  recreate(): Promise<void> {
    return this.#asAdmin(async (admin) => {
      await this.#drop(admin);
      await admin.query(`CREATE DATABASE "${this.#name}"`);
    });
  }

  drop(): Promise<void> {
    return this.#asAdmin((admin) => this.#drop(admin));
  }

  /** A pool that was told to end may say so before its connections have; one that is cut then ends its process. */
  async #drop(admin: pg.Client): Promise<void> {
    const patientUntil = wall() + LAST_SESSIONS_MS;
    const sessions = async (): Promise<number> =>
      (await admin.query('SELECT FROM pg_stat_activity WHERE datname = $1', [this.#name])).rowCount ?? 0;
    while ((await sessions()) > 0 && wall() < patientUntil) await sleep(10);
    await admin.query(`DROP DATABASE IF EXISTS "${this.#name}" WITH (FORCE)`);
  }

  async #asAdmin(work: (admin: pg.Client) => Promise<void>): Promise<void> {
    await this.close();
    const admin = new pg.Client({ connectionString: this.#admin });
    await admin.connect();
    await work(admin).finally(() => admin.end());
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    if (this.#client === undefined) {
      this.#client = new pg.Client({ connectionString: this.url });
      this.#client.on('error', () => {
        this.#client = undefined;
      });
      await this.#client.connect();
    }
    return (await this.#client.query<Row>(text, values)).rows;
  }

  /** The same for every peer: fresh statistics, and no checkpoint left over from filling. */
  async settleDown(filled = false): Promise<void> {
    await this.query(filled ? 'VACUUM (ANALYZE)' : 'ANALYZE');
    await this.query('CHECKPOINT');
  }

  /** A transaction that has seen the database and goes on: VACUUM may remove nothing newer. */
  async holdSnapshot(): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: this.url });
    client.on('error', () => {});
    await client.connect();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT count(*) FROM pg_class');
    return () => client.end();
  }

  /** Looks again and again who works and who waits for a lock. Answers, in the end, how many of a hundred waited. */
  async watchLocks(): Promise<() => Promise<number>> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    let active = 0;
    let waiting = 0;
    let ended = false;
    const watch = async (): Promise<void> => {
      while (!ended) {
        const { rows } = await client.query<{ active: number; waiting: number }>(
          `SELECT count(*)::int AS active, count(*) FILTER (WHERE wait_event_type = 'Lock')::int AS waiting
           FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`,
        );
        active += rows[0]?.active ?? 0;
        waiting += rows[0]?.waiting ?? 0;
        await sleep(10);
      }
    };
    const watching = watch();
    return async () => {
      ended = true;
      await watching;
      await client.end();
      return active === 0 ? 0 : (waiting * 100) / active;
    };
  }

  /** What the server, which is this machine's, has used so far. */
  async usage(): Promise<Usage> {
    const [row] = await this.query<{ pid: number; wal: string; bytes: string }>(
      `SELECT pg_backend_pid() AS pid, pg_current_wal_lsn() - '0/0'::pg_lsn AS wal,
         pg_database_size(current_database()) AS bytes`,
    );
    const { pid, wal, bytes } = row as { pid: number; wal: string; bytes: string };
    return { cpuMs: cpuOfServer(pid), walBytes: Number(wal), keptBytes: Number(bytes) };
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }
}

/** What peers on PostgreSQL have in common. */
export abstract class OnPostgres {
  protected readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  /** Ends the peer's own connections. */
  protected abstract disconnect(): Promise<void>;

  settleDown(filled?: boolean): Promise<void> {
    return this.database.settleDown(filled);
  }

  holdSnapshot(): Promise<() => Promise<void>> {
    return this.database.holdSnapshot();
  }

  usage(): Promise<Usage> {
    return this.database.usage();
  }

  async close(): Promise<void> {
    await this.disconnect();
    await this.database.close();
  }

  erase(): Promise<void> {
    return this.database.drop();
  }
}

const TICK_MS = 10;

/** All that a server's processes have used, those that ended included; `backend` is one of them. Null but on Linux. */
function cpuOfServer(backend: number): number | null {
  if (process.platform !== 'linux') return null;
  const server = statOf(backend)?.parent;
  let ticks = 0;
  for (const pid of readdirSync('/proc').map(Number)) {
    const stat = pid > 0 ? statOf(pid) : null;
    if (stat && (pid === server || stat.parent === server)) ticks += stat.ticks;
  }
  return ticks * TICK_MS;
}

function statOf(pid: number): { parent: number; ticks: number } | null {
  try {
    // After the name, which may hold anything: state, parent, ...; user, system and the same of children it waited for.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    return { parent: fields[1] as number, ticks: fields.slice(11, 15).reduce((sum, one) => sum + one, 0) };
  } catch {
    // It has ended meanwhile.
    return null;
  }
}
