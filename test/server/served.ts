import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Mulligan, type MulliganOptions } from '../../src/mulligan.ts';
import { type ServeOptions, serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/store.ts';

export interface Served {
  readonly url: string;
  readonly mulligan: Mulligan;
  /** Sends JSON and reads JSON. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly body: any;
}

export interface ServedOptions {
  readonly target?: string | Store;
  readonly queue?: MulliganOptions;
  readonly server?: ServeOptions;
}

/** A queue behind a server on a free port, until the test ends. */
export async function served({ target = 'memory:', queue = {}, server = {} }: ServedOptions = {}): Promise<Served> {
  const mulligan = await Mulligan.open(target, { log: () => {}, ...queue });
  const running = await serve(mulligan, { port: 0, ...server });
  onTestFinished(async () => {
    await running.close();
    await mulligan.close();
  });
  return { url: running.url, mulligan, call: caller(running.url) };
}

export function caller(url: string): Served['call'] {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
}

/** Claims one job; fails when there is none. */
export async function claimOne(call: Served['call'], extra: object = {}): Promise<{ lease: string; id: string }> {
  const { status, body } = await call('POST', '/api/v1/claim', { worker: 'w1', wait: 0, ...extra });
  if (status !== 200 || body.jobs.length === 0) throw new Error(`no job: ${JSON.stringify(body)}`);
  return body.jobs[0];
}

/** An empty folder, until the test ends. Ask for it before what is opened in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-server-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
