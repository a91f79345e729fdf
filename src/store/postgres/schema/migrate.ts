import { StoreIncompatibleError } from '../../../errors.ts';
import { quoted } from '../connection/address.ts';
import { toStoreError, withRole } from '../connection/failure.ts';
import type { Hosts } from '../connection/hosts.ts';
import { type FunctionSet, functions } from './functions.ts';
import { refuseUnfit, type SchemaState, schemaState } from './state.ts';
import { migrations } from './tables.ts';

/*
 * A schema is brought up to date in two parts: tables by numbered migrations, forward only, and functions by installing
 * this program's set beside the sets of other versions. Both happen in one transaction, under a lock that only one
 * process holds.
 */

/** Everything that is missing, for a person to apply; empty when nothing is. */
export function migrationSql(schema: string, { version, installed }: SchemaState, set: FunctionSet): string {
  const newer = migrations.slice(version).map((sql, index) => `-- Version ${version + index + 1}\n${sql.trim()}`);
  if (newer.length === 0 && installed) return '';
  // Not IF NOT EXISTS: that asks for the right to create schemas even where there is nothing to create.
  const parts = [
    `DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '${schema}') THEN CREATE SCHEMA ${quoted(schema)}; END IF;
END $$;
SET LOCAL search_path = ${quoted(schema)}, pg_temp;
-- PostgreSQL passes over a schema that the role may not use, and would make everything in the next one: the temporary one.
DO $$ BEGIN
  IF current_schema() IS DISTINCT FROM '${schema}' THEN
    RAISE EXCEPTION 'permission denied for schema ${schema}' USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;`,
    ...newer,
  ];
  if (newer.length > 0) parts.push(`UPDATE schema_identity SET version = ${migrations.length};`);
  if (!installed) parts.push(`-- Functions ${set.version}\n${set.sql.trim()}`);
  if (!installed) parts.push(`INSERT INTO function_sets (version) VALUES ('${set.version}');`);
  return parts.join('\n');
}

/** What a migration did, or would do. */
export interface Migrated {
  /** Versions of the tables; 0 when there were none. */
  readonly from: number;
  readonly to: number;
  /** The version of this program's functions. */
  readonly functions: string;
  /** False when they were installed before. */
  readonly installed: boolean;
}

function migrated(before: SchemaState, set: FunctionSet): Migrated {
  const to = Math.max(before.version, before.newest);
  return { from: before.version, to, functions: set.version, installed: !before.installed };
}

function isReady({ version, newest, installed }: SchemaState): boolean {
  return version >= newest && installed;
}

/**
 * Makes the tables and functions that are missing. Any number of processes may call this at once: one does it, the
 * others find it done.
 */
export async function migrate(hosts: Hosts, schema: string, set: FunctionSet = functions): Promise<Migrated> {
  const before = await look(hosts, schema, set);
  if (isReady(before)) return migrated(before, set);
  // A connection of its own: a migration may take longer than any other statement.
  const client = await hosts.client();
  try {
    // Whatever the server's default is: what another process has committed must be seen after the wait for it.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await client.query('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0');
    // Creating a schema is not safe to do twice at once, so a second process waits here.
    await client.query("SELECT pg_advisory_xact_lock(hashtext('mulligan: migrate'), hashtext($1))", [schema]);
    // A lock on a table that is waited for blocks every other statement on that table.
    await client.query("SET LOCAL lock_timeout = '10s'");
    const state = await fitState(client, schema, set);
    if (!isReady(state)) await client.query(migrationSql(schema, state, set));
    await client.query('COMMIT');
    return migrated(state, set);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw await explained(error, hosts, client);
  } finally {
    await client.end();
  }
}

/** What `migrate` would do, and the statements for a person to do it by hand. Nothing is touched. */
export async function planMigration(hosts: Hosts, schema: string): Promise<Migrated & { readonly sql: string }> {
  const state = await look(hosts, schema, functions);
  const sql = migrationSql(schema, state, functions);
  return { ...migrated(state, functions), sql: sql === '' ? '' : `BEGIN;\n${sql}\nCOMMIT;\n` };
}

/** For those who migrate by hand. */
export async function refuseOutdated(hosts: Hosts, schema: string): Promise<void> {
  const state = await look(hosts, schema, functions);
  if (isReady(state)) return;
  const { version, newest } = state;
  const [expected, found] =
    version < newest ? [`version ${newest}`, version || 'none'] : [`functions ${functions.version}`, 'other ones'];
  throw new StoreIncompatibleError(
    `${hosts.name}: schema ${schema}: expected ${expected}, found ${found}; run \`mulligan migrate\``,
  );
}

/** Removes a set of functions that no process uses any more. Answers how many functions and types it had. */
export async function dropFunctions(hosts: Hosts, schema: string, version: string): Promise<number> {
  if (version === functions.version) {
    throw new StoreIncompatibleError(`functions ${version}: expected those of another version, got this program's own`);
  }
  const client = await hosts.client();
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    const { rows } = await client.query(MEMBERS, [schema, `_${version}`]);
    for (const { drop } of rows as { drop: string }[]) await client.query(drop);
    await client.query(`DELETE FROM ${quoted(schema)}.function_sets WHERE version = $1`, [version]);
    await client.query('COMMIT');
    return rows.length;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw await explained(error, hosts, client);
  } finally {
    await client.end();
  }
}

/** Functions first: they use the types. */
const MEMBERS = `
  SELECT format('DROP FUNCTION %s', p.oid::regprocedure) AS drop FROM pg_proc p
  WHERE p.pronamespace = to_regnamespace(quote_ident($1)) AND right(p.proname, 9) = $2
  UNION ALL
  SELECT format('DROP TYPE %s', t.oid::regtype) FROM pg_type t
  WHERE t.typnamespace = to_regnamespace(quote_ident($1)) AND right(t.typname, 9) = $2
    AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')`;

async function look(hosts: Hosts, schema: string, set: FunctionSet): Promise<SchemaState> {
  const client = await hosts.connect().catch((error: unknown) => {
    throw toStoreError(error, hosts.name);
  });
  try {
    return await fitState(client, schema, set);
  } catch (error) {
    throw await explained(error, hosts, client);
  } finally {
    client.release();
  }
}

interface Client {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

async function explained(error: unknown, { name }: Hosts, client: Client): Promise<unknown> {
  return toStoreError(await withRole(error, name, (text) => client.query(text)), name);
}

async function fitState(client: Client, schema: string, set: FunctionSet): Promise<SchemaState> {
  const state = await schemaState(client, schema, set);
  refuseUnfit(state, schema);
  return state;
}
