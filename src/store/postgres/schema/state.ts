import { StoreIncompatibleError } from '../../../errors.ts';
import { quoted } from '../connection/address.ts';
import { type FunctionSet, functions } from './functions.ts';
import { migrations } from './tables.ts';

/** Servers older than this lack what the statements need. */
export const OLDEST_SERVER = 140_000;
/** Texts of jobs and errors may hold any character; in another encoding one of them fails the statement of many jobs. */
export const ENCODING = 'UTF8';

export interface SchemaState {
  readonly server: number;
  readonly encoding: string;
  /** Of the tables that are there; 0 when there are none. */
  readonly version: number;
  /** The oldest version of the tables that a program must know to use these. */
  readonly minimumReader: number;
  /** The newest version of the tables that this program knows. */
  readonly newest: number;
  /** True when this program's functions are there. */
  readonly installed: boolean;
}

interface Client {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Looks into the catalog itself: `to_regclass` may answer what it knew before the wait for another's migration. */
const FACTS = `
  SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding, EXISTS (
    SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'schema_identity') AS known`;

export async function schemaState(client: Client, schema: string, set: FunctionSet = functions): Promise<SchemaState> {
  const { rows } = await client.query(FACTS, [schema]);
  const { known, ...facts } = rows[0] as { server: number; encoding: string; known: boolean };
  const newest = migrations.length;
  if (!known) return { ...facts, version: 0, minimumReader: 0, newest, installed: false };
  const tables = await client.query(
    `SELECT version, minimum_reader AS "minimumReader",
       EXISTS (SELECT 1 FROM ${quoted(schema)}.function_sets f WHERE f.version = $1) AS installed
     FROM ${quoted(schema)}.schema_identity`,
    [set.version],
  );
  return { ...facts, newest, ...(tables.rows[0] as Pick<SchemaState, 'version' | 'minimumReader' | 'installed'>) };
}

export function refuseUnfit({ server, encoding, version, minimumReader, newest }: SchemaState, schema: string): void {
  if (server < OLDEST_SERVER) {
    throw new StoreIncompatibleError(
      `expected PostgreSQL ${OLDEST_SERVER / 10_000} or newer, got ${Math.floor(server / 10_000)}; nothing was touched`,
    );
  }
  if (encoding !== ENCODING) {
    throw new StoreIncompatibleError(
      `expected a database with encoding ${ENCODING}, got ${encoding}. Create another one: CREATE DATABASE ... ENCODING '${ENCODING}' TEMPLATE template0. Nothing was touched`,
    );
  }
  if (minimumReader > newest) {
    throw new StoreIncompatibleError(
      `schema ${schema}: expected tables for version ${newest}, got version ${version}, which needs a mulligan that knows version ${minimumReader}; update mulligan. Nothing was touched`,
    );
  }
}
