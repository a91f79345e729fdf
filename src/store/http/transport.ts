import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../clock.ts';
import {
  AccessError,
  ConfigError,
  LeaseLostError,
  MulliganError,
  PayloadError,
  StoreBusyError,
  StoreIncompatibleError,
  StoreUnavailableError,
} from '../../errors.ts';
import { doubling, withRetries } from '../../retrying.ts';
import { decode, encode } from './wire.ts';

/** Longer than any verb takes; a server that does not answer by then is as good as gone. */
const ANSWERED_WITHIN_MS = 60_000;
const pauses = doubling(20, 200);
/** A connection that was kept alive may be closed by the other side at the very moment it is used again. */
const MOST_SENDS = 3;
/** More calls at once wait for one of these. */
const MOST_CONNECTIONS = 128;

/** Where the server is, and who asks. */
export interface Remote {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
}

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Null for a GET. */
  readonly body: string | null;
}

/** Sends a request to the server; every failure is an error of Mulligan's own. */
export class Transport {
  readonly #remote: Remote;
  readonly #clock: Clock;
  readonly #agent: HttpAgent;

  constructor(remote: Remote, clock: Clock) {
    this.#remote = remote;
    this.#clock = clock;
    const Agent = remote.url.startsWith('https:') ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS });
  }

  get url(): string {
    return this.#remote.url;
  }

  /** All verbs are safe to repeat, so a call whose connection broke is sent again. */
  call(path: string, args: readonly unknown[]): Promise<unknown> {
    const body = encode(args);
    const isTransient = (error: unknown): boolean =>
      error instanceof StoreUnavailableError && error.cause instanceof Broken;
    return withRetries(this.#clock, { policy: pauses, isTransient, maxAttempts: MOST_SENDS }, () =>
      this.#send(path, body),
    );
  }

  get(path: string): Promise<unknown> {
    return this.#send(path, null);
  }

  /** An answer whose body is read bit by bit. */
  async stream(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await this.#request(path, { headers: { accept: 'text/event-stream' }, signal, body: null });
    if (response.statusCode !== 200) await this.#read(response);
    return response;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #send(path: string, body: string | null): Promise<unknown> {
    const timeout = new AbortController();
    const timer = this.#clock.after(ANSWERED_WITHIN_MS, () => timeout.abort());
    try {
      const headers = body === null ? {} : { 'content-type': 'application/json' };
      return await this.#read(await this.#request(path, { headers, signal: timeout.signal, body }));
    } catch (error) {
      throw error instanceof MulliganError ? error : this.#away(error, timeout.signal.aborted);
    } finally {
      timer.cancel();
    }
  }

  /** node:http and not fetch: on the same machine it takes half the time. It follows no redirect, which could lead a token astray. */
  #request(path: string, { headers, signal, body }: Sent): Promise<IncomingMessage> {
    const { url, token } = this.#remote;
    const options = {
      agent: this.#agent,
      signal,
      method: body === null ? 'GET' : 'POST',
      headers: {
        ...headers,
        ...(body !== null && { 'content-length': Buffer.byteLength(body) }),
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
    };
    return new Promise((resolve, reject) => {
      const request = (url.startsWith('https:') ? httpsRequest : httpRequest)(`${url}${path}`, options, resolve);
      request.on('error', reject);
      request.end(body ?? undefined);
    });
  }

  async #read(response: IncomingMessage): Promise<unknown> {
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString('utf8');
    const { statusCode = 0 } = response;
    if (statusCode === 200) return decode(text);
    throw this.#refused(statusCode, text);
  }

  #away(error: unknown, isTimeout: boolean): StoreUnavailableError {
    const why = isTimeout ? 'gave no answer in time' : `cannot be reached (${reasonOf(error)})`;
    const cause = isTimeout ? error : new Broken('the connection broke', { cause: error });
    return new StoreUnavailableError(`the server at ${this.#remote.url} ${why}.`, { cause });
  }

  /** In words of its own: what the server says is meant for those who write the header themselves. */
  #tokenNeeded(): string {
    const { url, token } = this.#remote;
    const got = token === null ? 'got none' : 'got one that it does not know';
    return `the server at ${url} needs a token, and ${got}. Set MULLIGAN_TOKEN, or give the option token in code.`;
  }

  /** By the code of the problem, never by its text. */
  #refused(status: number, text: string): Error {
    const { code = null, detail = `status ${status}`, issues = [] } = problemOf(text);
    const first = issues[0] === undefined ? '' : ` (${issues[0].path}: ${issues[0].message})`;
    const message = `the server at ${this.#remote.url}: ${detail}${first}`;
    switch (code) {
      case 'STORE_BUSY':
        return new StoreBusyError(message);
      case 'STORE_INCOMPATIBLE':
        return new StoreIncompatibleError(message);
      case 'PAYLOAD':
      case 'TOO_LARGE':
        return new PayloadError(message);
      case 'LEASE_LOST':
        return new LeaseLostError(message);
      case 'CONFIG':
        return new ConfigError(detail);
      case 'UNAUTHENTICATED':
        return new AccessError(code, this.#tokenNeeded());
      case 'FORBIDDEN':
        return new AccessError(code, message);
      default:
        return status < 500 && status !== 429 && code !== null
          ? new ConfigError(message)
          : new StoreUnavailableError(message);
    }
  }
}

/** Why a connection failed, before the answer was read. */
class Broken extends Error {}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? 'unknown';
}

interface SentProblem {
  readonly code?: string;
  readonly detail?: string;
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
}

/** A proxy in between may answer anything. */
function problemOf(text: string): SentProblem {
  try {
    const value = JSON.parse(text) as SentProblem | null;
    return typeof value?.code === 'string' ? value : {};
  } catch {
    return {};
  }
}
