import { span } from '../../time.ts';
import { type Check, ok, warn } from '../check.ts';
import { count, size } from '../words.ts';
import type { Server } from './server.ts';

/** Those that grow, or are changed all day. */
const LOOKED_AT = ['live', 'finished', 'runs'];
/** Autovacuum comes long before there are so many, if it can do anything. */
const MANY_DEAD = 50_000;
const DEAD_PART = 0.5;
/** A row of `live` takes a few hundred bytes. */
const LARGE_TABLE = 256_000_000;
const BYTES_PER_ROW = 4_000;

interface Table {
  readonly name: string;
  readonly rows: number;
  readonly dead: number;
  readonly bytes: number;
  readonly vacuumed: number | null;
  readonly unattended: boolean;
}

export async function tables(server: Server): Promise<Check[]> {
  const found = await server.rows<Table>(
    `SELECT c.relname AS name, s.n_live_tup::float8 AS rows, s.n_dead_tup::float8 AS dead,
       pg_total_relation_size(c.oid)::float8 AS bytes,
       extract(epoch FROM clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::float8 * 1000 AS vacuumed,
       coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false) AS unattended
     FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
     WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY ($2::text[])
     ORDER BY array_position($2::text[], c.relname::text)`,
    [server.schema, LOOKED_AT],
  );
  return found.map((table) => judge(server.schema, table));
}

export function judge(schema: string, { name, rows, dead, bytes, vacuumed, unattended }: Table): Check {
  const path = `${schema}.${name}`;
  const last = vacuumed === null ? 'never vacuumed' : `vacuumed ${span(vacuumed)} ago`;
  const found = `about ${count(rows, 'row')} and ${count(dead, 'dead one')} in ${size(bytes)}, ${last}`;
  const advice: string[] = [];
  if (unattended) advice.push(`ALTER TABLE ${path} RESET (autovacuum_enabled): autovacuum leaves it out`);
  if (dead > MANY_DEAD && dead > rows * DEAD_PART) {
    advice.push(`see whether something holds a snapshot (above); then VACUUM ${path}`);
  } else if (name === 'live' && bytes > LARGE_TABLE && bytes > rows * BYTES_PER_ROW) {
    advice.push(`it has grown over what it holds: VACUUM FULL ${path} in a quiet minute, as it locks the table`);
  }
  return advice.length === 0 ? ok(`table ${name}`, found) : warn(`table ${name}`, found, advice.join('; '));
}
