import { ENCODING, OLDEST_SERVER } from '../../../store/postgres/schema/state.ts';
import { bad, type Check, fromTrouble, ok, warn } from '../check.ts';
import { count } from '../words.ts';
import type { Server } from './server.ts';

const FULL_AT = 0.8;
const NO_ROOM_AT = 0.95;

export async function version(server: Server): Promise<Check> {
  const { number, text, standby, reads } = await server.row<{
    number: number;
    text: string;
    standby: boolean;
    reads: boolean;
  }>(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text,
       pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::bool AS reads`,
  );
  const found = `PostgreSQL ${text}`;
  const oldest = OLDEST_SERVER / 10_000;
  if (number < OLDEST_SERVER) return bad('server', `${found}, expected ${oldest} or newer`, 'update the server');
  if (standby)
    return bad('server', `${found}, a standby, which only reads`, 'name the primary in the URL, or all hosts');
  if (reads) return bad('server', `${found}, where this role only reads`, 'reset default_transaction_read_only');
  return ok('server', found);
}

export async function encoding(server: Server): Promise<Check> {
  const { server_encoding: found = '' } = await settings(server, ['server_encoding']);
  if (found === ENCODING) return ok('encoding', found);
  const advice = `create a database with ENCODING '${ENCODING}' TEMPLATE template0 and use that one: mulligan refuses this one`;
  return bad('encoding', `${found}, expected ${ENCODING}`, advice);
}

async function settings(server: Server, names: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const rows = await server.rows<{ name: string; setting: string }>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])',
    [names],
  );
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

/** Whether what was acknowledged is still there after a crash of the server's machine. */
export async function durability(server: Server): Promise<Check> {
  const found = await settings(server, ['fsync', 'synchronous_commit', 'full_page_writes']);
  const trouble: Omit<Check, 'name'>[] = [];
  if (found.fsync === 'off') {
    const advice = 'set fsync = on: a crash of the machine can destroy the whole database';
    trouble.push({ health: 'bad', found: 'fsync is off', advice });
  }
  if (found.full_page_writes === 'off') {
    const advice = 'set full_page_writes = on, unless the file system cannot tear a page';
    trouble.push({ health: 'warn', found: 'full_page_writes is off', advice });
  }
  if (found.synchronous_commit === 'off') {
    const advice =
      'ALTER ROLE ... SET synchronous_commit = on: a crash loses jobs of the last moment that were acknowledged';
    trouble.push({ health: 'warn', found: 'synchronous_commit is off', advice });
  }
  const all = Object.entries(found).map(([name, value]) => `${name} ${value}`);
  return fromTrouble('durability', all.sort().join(', '), trouble);
}

export async function isolation(server: Server): Promise<Check> {
  const { default_transaction_isolation: found = '' } = await settings(server, ['default_transaction_isolation']);
  if (found === 'read committed') return ok('isolation', found);
  const advice =
    "ALTER ROLE ... SET default_transaction_isolation = 'read committed': claims would fail and be tried again";
  return warn('isolation', `transactions of this role are ${found}`, advice);
}

export async function autovacuum(server: Server): Promise<Check> {
  const found = await settings(server, ['autovacuum', 'track_counts']);
  if (found.autovacuum === 'on' && found.track_counts === 'on') return ok('autovacuum', 'on');
  const off = found.autovacuum === 'on' ? 'track_counts' : 'autovacuum';
  return bad(
    'autovacuum',
    `${off} is off`,
    `set ${off} = on: dead rows are never removed, and claims get slower and slower`,
  );
}

export async function connections(server: Server): Promise<Check> {
  const { used, most } = await server.row<{ used: number; most: number }>(
    `SELECT (SELECT sum(numbackends) FROM pg_stat_database)::int AS used,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most`,
  );
  const found = `${used} of ${count(most, 'connection')} in use`;
  if (used < most * FULL_AT) return ok('connections', found);
  const judge = used < most * NO_ROOM_AT ? warn : bad;
  return judge(
    'connections',
    found,
    'raise max_connections, give processes smaller pools (poolOptions: { max }), or use a pooler',
  );
}
