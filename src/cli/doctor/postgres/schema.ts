import { quoted } from '../../../store/postgres/connection/address.ts';
import { functions } from '../../../store/postgres/schema/functions.ts';
import { schemaState } from '../../../store/postgres/schema/state.ts';
import { span } from '../../time.ts';
import { bad, type Check, ok, warn } from '../check.ts';
import { some } from '../words.ts';
import type { Server } from './server.ts';

export async function schemaVersion(server: Server): Promise<Check> {
  const { schema } = server;
  const { version, newest, minimumReader, installed } = await schemaState(server.client, schema);
  if (version === 0)
    return bad('schema', `${schema} is not there yet`, 'run mulligan migrate, or name another with ?schema=');
  const found = `${schema}, version ${version}; this program knows ${newest}`;
  if (minimumReader > newest) {
    const needed = `it needs a program that knows version ${minimumReader}`;
    return bad('schema', `${found}, and ${needed}`, 'update mulligan here: a newer one made this schema');
  }
  const migrate = 'run mulligan migrate; processes that may do so migrate it when they open it';
  if (version < newest) return warn('schema', found, migrate);
  if (!installed) return warn('schema', `${schema}, version ${version}, without this program's functions`, migrate);
  // Newer tables that this program can use are no trouble: that is a rolling deploy.
  return ok('schema', version === newest ? `${schema}, version ${version}` : found);
}

/** Sets of other versions stay: a process of that version may still use them. */
export async function functionSets(server: Server): Promise<Check> {
  const sets = await server.rows<{ version: string; age: number }>(
    `SELECT version, extract(epoch FROM clock_timestamp() - installed_at)::float8 * 1000 AS age
     FROM ${quoted(server.schema)}.function_sets ORDER BY installed_at DESC`,
  );
  const others = sets.filter(({ version }) => version !== functions.version);
  const own = `${functions.version}, of this program`;
  if (others.length === 0) return ok('functions', own);
  const listed = some(others.map(({ version, age }) => `${version} (installed ${span(age)} ago)`));
  return ok('functions', `${own}; of other versions: ${listed}`);
}

/** What is missing, one row each: the words of the GRANT that would mend it. */
const MISSING = `
  SELECT 'USAGE ON SCHEMA ' || quote_ident($1) AS missing WHERE NOT has_schema_privilege($1, 'USAGE')
  UNION ALL
  SELECT p.needed || ' ON ' || quote_ident($1) || '.' || c.relname
  FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (needed)
  WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
    AND (c.relname NOT IN ('schema_identity', 'function_sets') OR p.needed = 'SELECT') AND NOT has_table_privilege(c.oid, p.needed)
  UNION ALL
  SELECT 'USAGE ON SEQUENCE ' || quote_ident($1) || '.' || c.relname FROM pg_class c
  WHERE c.relnamespace = to_regnamespace($1)
    -- Conditions come in any order, and this one fails for tables.
    AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') ELSE false END
  UNION ALL
  SELECT 'EXECUTE ON FUNCTION ' || f.oid::regprocedure::text FROM pg_proc f
  WHERE f.pronamespace = to_regnamespace($1) AND NOT has_function_privilege(f.oid, 'EXECUTE')`;

export async function rights(server: Server): Promise<Check> {
  const { schema } = server;
  const { exists, creates, owns } = await server.row<{ exists: boolean; creates: boolean; owns: boolean | null }>(
    `SELECT n.oid IS NOT NULL AS exists, has_database_privilege(current_database(), 'CREATE') AS creates,
       pg_has_role(n.nspowner, 'USAGE') AS owns
     FROM (SELECT to_regnamespace($1)::oid AS oid) g LEFT JOIN pg_namespace n ON n.oid = g.oid`,
    [schema],
  );
  if (!exists) {
    if (creates) return ok('rights', 'this role may create the schema');
    return bad(
      'rights',
      'this role may not create the schema',
      'run mulligan migrate as a role that may, or GRANT CREATE ON DATABASE',
    );
  }
  const missing = (await server.rows<{ missing: string }>(MISSING, [schema])).map((row) => row.missing);
  if (missing.length > 0)
    return bad('rights', `missing: ${some(missing)}`, 'GRANT them, as docs/postgres.md lists them');
  return ok(
    'rights',
    owns ? 'all that is needed; this role may also migrate' : 'all that is needed; another role migrates',
  );
}
