import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { StoredToken } from '../../src/server/security/tokens.ts';

/* A server in a process of its own, whose heap is bounded: what grows with what clients send ends it. */

export const HEAP_LIMIT_MB = 512;

export interface ServerSpec {
  readonly target: string;
  readonly tokens: readonly StoredToken[];
  readonly longestWait?: `${number}ms` | `${number}s`;
}

export interface Figures {
  readonly peakHeap: number;
  readonly heap: number;
  readonly rss: number;
  /** Whether something that a client sent has become a property of all objects. */
  readonly isPolluted: boolean;
}

export interface BoundedServer {
  readonly url: string;
  readonly pid: number;
  /** Null while it lives. */
  readonly ended: () => string | null;
  /** In MB: the most that was in use, garbage included, and what is in use after a collection. */
  figures(): Promise<Figures>;
}

export async function startBounded(spec: ServerSpec): Promise<BoundedServer> {
  const child = fork(fileURLToPath(new URL('bounded-process.ts', import.meta.url)), {
    env: { ...process.env, BOUNDED_SERVER: JSON.stringify(spec) },
    execArgv: [`--max-old-space-size=${HEAP_LIMIT_MB}`, '--expose-gc', '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-4_000);
  });
  let ended: string | null = null;
  const gone = once(child, 'exit').then(([code, signal]) => {
    ended = `the server ended with ${signal ?? code}: ${said}`;
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  const answer = async <Message>(): Promise<Message> => {
    const [message] = await Promise.race([
      once(child, 'message'),
      gone.then(() => Promise.reject(new Error(ended ?? ''))),
    ]);
    return message as Message;
  };
  const url = await answer<string>();
  return {
    url,
    pid: child.pid as number,
    ended: () => ended,
    figures() {
      child.send('figures');
      return answer();
    },
  };
}
