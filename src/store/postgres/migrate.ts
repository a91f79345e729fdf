import { StoreIncompatibleError } from '../../errors.ts';
import { toStoreError } from './failure.ts';
import type { Hosts } from './hosts.ts';
import { migrations } from './schema.ts';

/** Servers older than this lack what the statements need. */
const OLDEST_SERVER = 140_000;

/** What brings a schema from `version` to the newest, for a person to apply; empty when nothing is to be done. */
export function migrationSql(schema: string, version: number): string {
  return version >= migrations.length ? '' : `BEGIN;\n${steps(schema, version)}\nCOMMIT;\n`;
}

function steps(schema: string, version: number): string {
  const newer = migrations.slice(version).map((sql, index) => `-- Version ${version + index + 1}\n${sql.trim()}`);
  return `CREATE SCHEMA IF NOT EXISTS ${schema};
SET LOCAL search_path = ${schema}, pg_temp;
CREATE TABLE IF NOT EXISTS schema_version (version int NOT NULL);
${newer.join('\n')}
DELETE FROM schema_version;
INSERT INTO schema_version VALUES (${migrations.length});`;
}

export interface SchemaState {
  /** 0 when there is none yet. */
  readonly version: number;
  readonly newest: number;
  readonly server: number;
}

interface Client {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Looks into the catalog itself: `to_regclass` may answer what it knew before the wait for another's migration. */
const STATE = `
  SELECT current_setting('server_version_num')::int AS server, EXISTS (
    SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'schema_version') AS known`;

export async function schemaState(client: Client, schema: string): Promise<SchemaState> {
  const { rows } = await client.query(STATE, [schema]);
  const { server, known } = rows[0] as { server: number; known: boolean };
  if (!known) return { version: 0, newest: migrations.length, server };
  const answer = await client.query(`SELECT version FROM ${schema}.schema_version`);
  return { version: (answer.rows[0] as { version: number }).version, newest: migrations.length, server };
}

/** Brings the schema to the newest version. Any number of processes may call this at once: one does it, the others find it done. */
export async function migrate(hosts: Hosts, schema: string): Promise<void> {
  const client = await hosts.connect();
  let broken = false;
  try {
    const before = await schemaState(client, schema);
    refuseUnfit(before, schema);
    if (before.version === before.newest) return;
    // Whatever the server's default is: what another has committed must be seen after the wait for it.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // Creating a schema is not safe to do twice at once, so whoever comes second waits here.
    await client.query("SELECT pg_advisory_xact_lock(hashtext('mulligan: migrate'), hashtext($1))", [schema]);
    const now = await schemaState(client, schema);
    refuseUnfit(now, schema);
    if (now.version < now.newest) await client.query(steps(schema, now.version));
    await client.query('COMMIT');
  } catch (error) {
    broken = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    );
    throw toStoreError(error, hosts.name);
  } finally {
    client.release(broken);
  }
}

/** For those who migrate by hand. */
export async function refuseOutdated(hosts: Hosts, schema: string): Promise<void> {
  const client = await hosts.connect();
  try {
    const state = await schemaState(client, schema);
    refuseUnfit(state, schema);
    if (state.version === state.newest) return;
    throw new StoreIncompatibleError(
      `schema ${schema}: expected version ${state.newest}, found ${state.version || 'none'}; run \`mulligan migrate\``,
    );
  } catch (error) {
    throw toStoreError(error, hosts.name);
  } finally {
    client.release();
  }
}

export function refuseUnfit({ version, newest, server }: SchemaState, schema: string): void {
  if (server < OLDEST_SERVER) {
    throw new StoreIncompatibleError(
      `expected PostgreSQL ${OLDEST_SERVER / 10_000} or newer, found ${Math.floor(server / 10_000)}; nothing was touched`,
    );
  }
  if (version > newest) {
    throw new StoreIncompatibleError(
      `schema ${schema}: expected version ${newest} or older, found ${version}; update mulligan. Nothing was touched`,
    );
  }
}
