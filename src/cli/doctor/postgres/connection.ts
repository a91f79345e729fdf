import type { Clock } from '../../../clock.ts';
import type { ClientLike } from '../../../store/postgres/connection/driver.ts';
import { read } from '../../../untrusted/thrown.ts';
import { span } from '../../time.ts';
import { type Check, ok, warn } from '../check.ts';
import type { Server } from './server.ts';

const SAMPLES = 5;
const SLOW_MS = 50;
const SKEWED_MS = 1_000;
const NOTIFICATION_TIMEOUT_MS = 3_000;

export async function connection(server: Server, clock: Clock): Promise<Check> {
  const { roundTripMs } = await quickest(server, clock);
  const { user, tls, at } = await server.row<{ user: string; tls: boolean; at: string | null }>(
    `SELECT current_user AS user, host(inet_server_addr()) || ':' || inet_server_port() AS at,
       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS tls`,
  );
  // Of several hosts, the one that is used now.
  const host = at !== null && server.hosts.name.includes(',') ? ` on ${at}` : '';
  const found = `${server.hosts.name}${host} as ${user}, ${tls ? 'with TLS' : 'without TLS'}; a round trip takes ${roundTripMs.toFixed(1)}ms`;
  if (roundTripMs < SLOW_MS) return ok('connection', found);
  return warn(
    'connection',
    found,
    'let the workers run closer to the server: every claim and every result is a round trip',
  );
}

interface Sample {
  readonly roundTripMs: number;
  /** The server's clock less ours. */
  readonly skewMs: number;
}

/** The sample with the shortest round trip has the smallest error. */
async function quickest(server: Server, clock: Clock): Promise<Sample> {
  const samples: Sample[] = [];
  while (samples.length < SAMPLES) {
    const from = clock.monotonic();
    const { now } = await server.row<{ now: number }>(
      'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
    );
    const roundTripMs = clock.monotonic() - from;
    samples.push({ roundTripMs, skewMs: now - (clock.now() - roundTripMs / 2) });
  }
  return samples.reduce((best, sample) => (sample.roundTripMs < best.roundTripMs ? sample : best));
}

/** Times in the queue are the server's, so a wrong clock here does little harm. */
export async function clock(server: Server, ours: Clock): Promise<Check> {
  const { skewMs, roundTripMs } = await quickest(server, ours);
  const apart = Math.abs(skewMs);
  if (apart <= SKEWED_MS + roundTripMs)
    return ok('clock', `the server's and this machine's agree, to ${span(Math.max(1, apart))}`);
  const found = `the server's is ${span(apart)} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's`;
  return warn('clock', found, 'set the clocks by NTP: jobs enqueued with `at` come that much too early or too late');
}

/** A pooler makes up the process id that it answers at the start of a connection: the server's process has another. */
export async function pooler(server: Server): Promise<Check> {
  const { pid, limit } = await server.row<{ pid: number; limit: string }>(
    `SELECT pg_backend_pid() AS pid, current_setting('statement_timeout') AS limit`,
  );
  const answered = read(server.client, 'processID');
  if (server.hosts.ownSessions && (typeof answered !== 'number' || answered === pid))
    return ok('pooler', 'none in between');
  // It may pass our limits on, refuse them, or take and drop them.
  const limits = limit === '0' ? 'without a limit to the time of a statement' : `where a statement may take ${limit}`;
  return ok('pooler', `one is in between, ${limits}`);
}

/** A real notification, from one connection to another. */
export async function wakeUps(server: Server, clock: Clock): Promise<Check> {
  const name = 'wake-ups';
  const polling = 'Other processes find new work by polling, each `poll` (1 s).';
  if (!server.hosts.ownSessions) return ok(name, `not used behind this pooler. ${polling}`);
  const listener = await server.hosts.client();
  try {
    const tookMs = await notified(server, listener, clock);
    if (tookMs !== null) return ok(name, `LISTEN and NOTIFY work; a notification takes ${tookMs.toFixed(1)}ms`);
  } finally {
    await listener.end();
  }
  const advice = 'pool by session, or give workers an address past the pooler; or open the store with wakeUps: false';
  return warn(name, `no notification arrived within ${span(NOTIFICATION_TIMEOUT_MS)}. ${polling}`, advice);
}

async function notified(server: Server, listener: ClientLike, clock: Clock): Promise<number | null> {
  // Nobody else listens here, so no worker is woken.
  const channel = `mulligan_doctor_${clock.newId().replaceAll('-', '')}`;
  const notification = new Promise<true>((resolve) => listener.on('notification', () => resolve(true)));
  await listener.query(`LISTEN ${channel}`);
  const from = clock.monotonic();
  await server.rows('SELECT pg_notify($1, $2)', [channel, '']);
  const timedOut = Promise.withResolvers<false>();
  const timer = clock.after(NOTIFICATION_TIMEOUT_MS, () => timedOut.resolve(false));
  const arrived = await Promise.race([notification, timedOut.promise]);
  timer.cancel();
  // A pooler keeps the connection for others.
  await listener.query(`UNLISTEN ${channel}`);
  return arrived ? clock.monotonic() - from : null;
}
