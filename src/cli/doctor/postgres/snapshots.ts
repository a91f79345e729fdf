import { span } from '../../time.ts';
import { type Check, type Health, ok, warn } from '../check.ts';
import { count, size, some } from '../words.ts';
import type { Server } from './server.ts';

/*
 * A row that was deleted or changed stays until no snapshot can see it. A queue changes the same few rows all day: one
 * transaction that is left open anywhere in the database makes the tables of the queue grow for as long as it lasts.
 */

const LONG_MS = 60_000;
const VERY_LONG_MS = 3_600_000;
/** For what has no time to it. */
const MANY_TRANSACTIONS = 100_000;
const MUCH_LOG = 1_000_000_000;

interface Session {
  readonly pid: number;
  readonly user: string | null;
  readonly application: string | null;
  readonly address: string | null;
  readonly state: string | null;
  readonly ms: number | null;
}

const WHO = `a.pid, a.usename AS user, a.application_name AS application, host(a.client_addr) AS address,
  coalesce(a.state, a.backend_type) AS state`;

/** Without the text of queries, which may hold secrets. */
function who({ pid, user, application, address, state }: Session): string {
  const parts = [application || null, user === null ? null : `as ${user}`, address === null ? null : `from ${address}`];
  return `pid ${pid} (${[state, parts.filter((part) => part !== null).join(' ')].filter(Boolean).join(', ')})`;
}

export function healthOf(ms: number): Health {
  return ms < LONG_MS ? 'ok' : ms < VERY_LONG_MS ? 'warn' : 'bad';
}

export async function snapshots(server: Server): Promise<Check> {
  const name = 'snapshots';
  const [oldest] = await server.rows<Session & { transactions: number }>(
    `SELECT ${WHO}, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 * 1000 AS ms,
       greatest(age(a.backend_xmin), age(a.backend_xid))::float8 AS transactions
     FROM pg_stat_activity a
     WHERE a.pid <> pg_backend_pid() AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
       AND (a.datname = current_database() OR a.backend_type = 'walsender')
       -- Vacuum does not stand in its own way.
       AND a.pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
     ORDER BY transactions DESC, a.xact_start LIMIT 1`,
  );
  const unseen = (await seesAll(server)) ? '' : '; those of other roles cannot be seen without pg_read_all_stats';
  if (oldest === undefined) return ok(name, `no session holds one${unseen}`);
  const { ms, transactions, pid } = oldest;
  const since = ms === null ? '' : `for ${span(ms)}, `;
  const found = `the oldest is held ${since}over ${count(transactions, 'transaction')}, by ${who(oldest)}${unseen}`;
  const health = ms === null ? (transactions < MANY_TRANSACTIONS ? 'ok' : 'warn') : healthOf(ms);
  if (health === 'ok') return ok(name, found);
  const advice = `let it end, or SELECT pg_terminate_backend(${pid}): rows that died since cannot be removed, and claims get slower`;
  return { name, health, found, advice };
}

async function seesAll(server: Server): Promise<boolean> {
  const { all } = await server.row<{ all: boolean }>(`SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS all`);
  return all;
}

export async function idleTransactions(server: Server): Promise<Check> {
  const name = 'idle transactions';
  const idle = await server.rows<Session & { ms: number }>(
    `SELECT ${WHO}, extract(epoch FROM clock_timestamp() - a.state_change)::float8 * 1000 AS ms
     FROM pg_stat_activity a
     WHERE a.datname = current_database() AND a.state LIKE 'idle in transaction%' ORDER BY a.state_change`,
  );
  const [longest] = idle;
  if (longest === undefined) return ok(name, 'none');
  const found = `${count(idle.length, 'session')}, the longest for ${span(longest.ms)}: ${who(longest)}`;
  if (longest.ms < LONG_MS) return ok(name, found);
  const advice =
    'they may hold locks and snapshots: end them where they come from, or set idle_in_transaction_session_timeout';
  return { name, health: healthOf(longest.ms), found, advice };
}

export async function preparedTransactions(server: Server): Promise<Check> {
  const name = 'prepared transactions';
  const prepared = await server.rows<{ gid: string; owner: string; ms: number }>(
    `SELECT gid, owner, extract(epoch FROM clock_timestamp() - prepared)::float8 * 1000 AS ms
     FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared`,
  );
  const [oldest] = prepared;
  if (oldest === undefined) return ok(name, 'none');
  const found = `${prepared.length}, the oldest ${span(oldest.ms)} old: '${oldest.gid}' of ${oldest.owner}`;
  if (oldest.ms < LONG_MS) return ok(name, found);
  const advice = 'COMMIT PREPARED or ROLLBACK PREPARED it: it holds a snapshot and its locks, over restarts too';
  return { name, health: healthOf(oldest.ms), found, advice };
}

export async function replicationSlots(server: Server): Promise<Check> {
  const name = 'replication slots';
  const slots = await server.rows<{ slot: string; active: boolean; transactions: number | null; held: number | null }>(
    `SELECT slot_name AS slot, active, age(xmin)::float8 AS transactions,
       CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 END AS held
     FROM pg_replication_slots`,
  );
  if (slots.length === 0) return ok(name, 'none');
  const describe = (slot: (typeof slots)[number]): string => {
    const held = slot.held === null ? '' : ` with ${size(slot.held)} of WAL`;
    const snapshot = slot.transactions === null ? '' : `, a snapshot ${count(slot.transactions, 'transaction')} old`;
    return `${slot.slot} (${slot.active ? 'active' : 'inactive'}${held}${snapshot})`;
  };
  const harmful = slots.filter(
    ({ active, transactions, held }) =>
      (transactions ?? 0) > MANY_TRANSACTIONS || (!active && ((held ?? 0) > MUCH_LOG || transactions !== null)),
  );
  if (harmful.length === 0) return ok(name, some(slots.map(describe)));
  const advice =
    'bring the standby or subscriber back, or SELECT pg_drop_replication_slot(...): they hold rows or fill the disk';
  return warn(name, some(harmful.map(describe)), advice);
}
