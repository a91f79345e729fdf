import { type MulliganError, StoreIncompatibleError } from '../../../errors.ts';
import { quoted } from '../connection/address.ts';
import { toStoreError, withRole } from '../connection/failure.ts';
import type { Hosts } from '../connection/hosts.ts';
import { migrations } from './tables.ts';

/** Servers older than this lack what the statements need. */
export const OLDEST_SERVER = 140_000;

/** What brings a schema from `version` to the newest, for a person to apply; empty when nothing is to be done. */
export function migrationSql(schema: string, version: number): string {
  return version >= migrations.length ? '' : `BEGIN;\n${steps(schema, version)}\nCOMMIT;\n`;
}

function steps(schema: string, version: number): string {
  const newer = migrations.slice(version).map((sql, index) => `-- Version ${version + index + 1}\n${sql.trim()}`);
  // Not IF NOT EXISTS: that asks for the right to create schemas even where there is nothing to create.
  return `DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '${schema}') THEN CREATE SCHEMA ${quoted(schema)}; END IF;
END $$;
SET LOCAL search_path = ${quoted(schema)}, pg_temp;
-- A schema that a role may not use is passed over, and everything would be made in the next one: the temporary one.
DO $$ BEGIN
  IF current_schema() IS DISTINCT FROM '${schema}' THEN
    RAISE EXCEPTION 'permission denied for schema ${schema}' USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;
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
  const answer = await client.query(`SELECT version FROM ${quoted(schema)}.schema_version`);
  return { version: (answer.rows[0] as { version: number }).version, newest: migrations.length, server };
}

/** What a migration did; nothing when both are the same. */
export interface Migrated {
  readonly from: number;
  readonly to: number;
}

/** Brings the schema to the newest version. Any number of processes may call this at once: one does it, the others find it done. */
export async function migrate(hosts: Hosts, schema: string): Promise<Migrated> {
  const client = await hosts.connect();
  let broken = false;
  try {
    const { version, newest } = await fitState(client, schema);
    if (version === newest) return { from: version, to: newest };
    // Whatever the server's default is: what another has committed must be seen after the wait for it.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // Creating a schema is not safe to do twice at once, so whoever comes second waits here.
    await client.query("SELECT pg_advisory_xact_lock(hashtext('mulligan: migrate'), hashtext($1))", [schema]);
    const { version: from } = await fitState(client, schema);
    if (from < newest) await client.query(steps(schema, from));
    await client.query('COMMIT');
    return { from, to: newest };
  } catch (error) {
    broken = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    );
    throw await told(error, hosts, client);
  } finally {
    client.release(broken);
  }
}

/** What `migrate` would do, and the statements for a person to do it by hand. Nothing is touched. */
export async function planMigration(hosts: Hosts, schema: string): Promise<Migrated & { readonly sql: string }> {
  const { version, newest } = await look(hosts, schema);
  return { from: version, to: newest, sql: migrationSql(schema, version) };
}

/** For those who migrate by hand. */
export async function refuseOutdated(hosts: Hosts, schema: string): Promise<void> {
  const { version, newest } = await look(hosts, schema);
  if (version === newest) return;
  throw new StoreIncompatibleError(
    `${hosts.name}: schema ${schema}: expected version ${newest}, found ${version || 'none'}; run \`mulligan migrate\``,
  );
}

async function look(hosts: Hosts, schema: string): Promise<SchemaState> {
  const client = await hosts.connect();
  try {
    return await fitState(client, schema);
  } catch (error) {
    throw await told(error, hosts, client);
  } finally {
    client.release();
  }
}

async function told(error: unknown, { name }: Hosts, client: Client): Promise<MulliganError> {
  return toStoreError(await withRole(error, name, (text) => client.query(text)), name);
}

async function fitState(client: Client, schema: string): Promise<SchemaState> {
  const state = await schemaState(client, schema);
  refuseUnfit(state, schema);
  return state;
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
