import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chownSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runSql } from './postgres-schema.ts';
import { freePort } from './postgres-server.ts';

const NOBODY = 65_534;
const isRoot = userInfo().uid === 0;

/** Where the program is; null when it is not installed. */
export function findPgBouncer(): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  for (const folder of folders) {
    const path = join(folder, 'pgbouncer');
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here.
    }
  }
  return null;
}

/** A pooler before a server, which lends its connections for one transaction at a time. */
export class PgBouncer implements AsyncDisposable {
  readonly port: number;
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly #target: URL;

  static async start(url: string, settings: Readonly<Record<string, string>> = {}): Promise<PgBouncer> {
    const bouncer = new PgBouncer(new URL(url), await freePort(), settings);
    for (;;) {
      if (bouncer.#process.exitCode !== null) throw new Error('pgbouncer did not start');
      try {
        await runSql(bouncer.url, 'SELECT 1');
        return bouncer;
      } catch {
        await sleep(50);
      }
    }
  }

  private constructor(target: URL, port: number, settings: Readonly<Record<string, string>>) {
    this.#target = target;
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), 'mulligan-pgbouncer-'));
    const file = join(this.#folder, 'pgbouncer.ini');
    const all = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'any',
      pool_mode: 'transaction',
      default_pool_size: 3,
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    const { hostname, port: targetPort, username } = target;
    const to = `* = host=${hostname} port=${targetPort} user=${username}`;
    writeFileSync(file, `[databases]\n${to}\n[pgbouncer]\n${lines.join('\n')}\n`);
    // It refuses to run as root, as the server does.
    if (isRoot) for (const path of [this.#folder, file]) chownSync(path, NOBODY, NOBODY);
    const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
    this.#process = spawn(findPgBouncer() as string, [file], { ...identity, stdio: 'ignore' });
  }

  /** The same database, by way of the pooler. */
  get url(): string {
    const here = new URL(this.#target);
    here.port = `${this.port}`;
    return `${here}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true });
  }
}
