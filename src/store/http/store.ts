import { type Clock, systemClock } from '../../clock.ts';
import { describe } from '../../config.ts';
import { ClosedError, ConfigError } from '../../errors.ts';
import { scrubAddress } from '../../untrusted/scrub.ts';
import { type Forwarding, forwarding } from '../forwarding.ts';
import type { JobsListener, Store, Unsubscribe } from '../store.ts';
import { type RemoteVerb, remoteVerbs } from '../verbs.ts';
import { Hints } from './hints.ts';
import { Transport } from './transport.ts';
import { ABOUT, type AboutStore, STORE_PATH } from './verbs.ts';

export interface HttpStoreOptions {
  /** Of a server that `mulligan serve` runs, or that an application has mounted: `https://queue.example.com`. */
  readonly url: string;
  /** As `mulligan token create` made it. It needs the scopes of what is done: read, write, work or admin. */
  readonly token?: string;
  readonly clock?: Clock;
}

const Forwarded: Forwarding<RemoteVerb> = forwarding(remoteVerbs);

/**
 * A store behind an HTTP server. Every verb is one request; what the store of the server promises holds here too, because it
 * is that store which answers. Transactions are absent: they share a connection with the caller's own data.
 */
export class HttpStore extends Forwarded implements Store {
  readonly kind = 'http';
  readonly pushes: boolean;
  readonly #transport: Transport;
  readonly #hints: Hints;
  readonly #underWay: Set<Promise<unknown>> = new Set();
  #isClosed = false;

  /** Asks the server what it serves, so that a wrong address or token is found out here. */
  static async open(options: HttpStoreOptions): Promise<HttpStore> {
    const { clock = systemClock } = options;
    const transport = new Transport({ url: checkUrl(options.url), token: checkToken(options.token) }, clock);
    const about = (await transport.get(`${STORE_PATH}/${ABOUT}`).catch((error) => {
      transport.close();
      throw error;
    })) as Partial<AboutStore> | null;
    if (typeof about?.kind !== 'string' || typeof about.pushes !== 'boolean') {
      throw new ConfigError(`expected a server of Mulligan at ${transport.url}, got another one.`);
    }
    return new HttpStore(transport, clock, about.pushes);
  }

  private constructor(transport: Transport, clock: Clock, pushes: boolean) {
    super((verb, args) => this.#call(verb, args));
    this.#transport = transport;
    this.#hints = new Hints(transport, clock);
    this.pushes = pushes;
  }

  onWork(listener: () => void): Unsubscribe {
    return this.#hints.onWork(listener);
  }

  onJobs(listener: JobsListener): Unsubscribe {
    return this.#hints.onJobs(listener);
  }

  /** Calls that are under way are answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#hints.close();
    await Promise.allSettled(this.#underWay);
    this.#transport.close();
  }

  async #call(verb: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#isClosed) throw new ClosedError('expected an open store, got a closed one.');
    return this.#send(verb, args);
  }

  #send(verb: string, args: readonly unknown[]): Promise<unknown> {
    const call = this.#hints.opened.then(() => this.#transport.call(`${STORE_PATH}/${verb}`, args));
    this.#underWay.add(call);
    const forget = (): void => void this.#underWay.delete(call);
    call.then(forget, forget);
    return call;
  }
}

export function isHttpUrl(url: string): boolean {
  return /^https?:\/\/[^/]/i.test(url);
}

/** A token in an address would end up in logs, process lists and histories. */
function checkUrl(url: string): string {
  const got = describe(scrubAddress(url));
  if (!isHttpUrl(url) || !URL.canParse(url)) throw new ConfigError(`expected https://HOST, got ${got}.`);
  const { username, password, search, hash } = new URL(url);
  if (username !== '' || password !== '') {
    throw new ConfigError(`expected an address without a user or password, got ${got}. Give the token as an option.`);
  }
  if (search !== '' || hash !== '') throw new ConfigError(`expected an address without ? and #, got ${got}.`);
  return url.replace(/\/+$/, '');
}

function checkToken(token: unknown): string | null {
  if (token === undefined) return null;
  if (typeof token === 'string' && /^[\x21-\x7e]{1,512}$/.test(token)) return token;
  // Not shown, whatever it is.
  throw new ConfigError('token: expected a token that mulligan token create made, got something else.');
}
