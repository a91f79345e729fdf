import { type Clock, systemClock } from '../../clock.ts';
import { describe } from '../../config.ts';
import { ClosedError, ConfigError } from '../../errors.ts';
import { scrub } from '../../untrusted/scrub.ts';
import type { JobsListener, Store, Unsubscribe } from '../store.ts';
import { Hints } from './hints.ts';
import { Transport } from './transport.ts';
import { ABOUT, type AboutStore, type RemoteVerb, STORE_PATH } from './verbs.ts';

export interface HttpStoreOptions {
  /** Of a server that `mulligan serve` runs, or that an application has mounted: `https://queue.example.com`. */
  readonly url: string;
  /** As `mulligan token create` made it. It needs the scopes of what is done: read, write, work or admin. */
  readonly token?: string;
  readonly clock?: Clock;
}

type Call<Verb extends RemoteVerb> = Store[Verb];

/**
 * A store behind an HTTP server. Every verb is one request; what the store of the server promises holds here too, because it
 * is that store which answers. Transactions are absent: they share a connection with the caller's own data.
 */
export class HttpStore implements Store {
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
    this.#transport = transport;
    this.#hints = new Hints(transport, clock);
    this.pushes = pushes;
  }

  readonly enqueue: Call<'enqueue'> = (...args) => this.#call('enqueue', args);
  readonly claim: Call<'claim'> = (...args) => this.#call('claim', args);
  readonly claimGated: Call<'claimGated'> = (...args) => this.#call('claimGated', args);
  readonly claimLimited: Call<'claimLimited'> = (...args) => this.#call('claimLimited', args);
  readonly permit: Call<'permit'> = (...args) => this.#call('permit', args);
  readonly report: Call<'report'> = (...args) => this.#call('report', args);
  readonly heartbeat: Call<'heartbeat'> = (...args) => this.#call('heartbeat', args);
  readonly settle: Call<'settle'> = (...args) => this.#call('settle', args);
  readonly expired: Call<'expired'> = (...args) => this.#call('expired', args);
  readonly remember: Call<'remember'> = (...args) => this.#call('remember', args);
  readonly recall: Call<'recall'> = (...args) => this.#call('recall', args);
  readonly cancelRequested: Call<'cancelRequested'> = (...args) => this.#call('cancelRequested', args);
  readonly get: Call<'get'> = (...args) => this.#call('get', args);
  readonly ended: Call<'ended'> = (...args) => this.#call('ended', args);
  readonly list: Call<'list'> = (...args) => this.#call('list', args);
  readonly count: Call<'count'> = (...args) => this.#call('count', args);
  readonly operations: Call<'operations'> = (...args) => this.#call('operations', args);
  readonly runs: Call<'runs'> = (...args) => this.#call('runs', args);
  readonly logs: Call<'logs'> = (...args) => this.#call('logs', args);
  readonly ledger: Call<'ledger'> = (...args) => this.#call('ledger', args);
  readonly stats: Call<'stats'> = (...args) => this.#call('stats', args);
  readonly gates: Call<'gates'> = (...args) => this.#call('gates', args);
  readonly gateHistory: Call<'gateHistory'> = (...args) => this.#call('gateHistory', args);
  readonly queues: Call<'queues'> = (...args) => this.#call('queues', args);
  readonly limits: Call<'limits'> = (...args) => this.#call('limits', args);
  readonly limitKeys: Call<'limitKeys'> = (...args) => this.#call('limitKeys', args);
  readonly schedules: Call<'schedules'> = (...args) => this.#call('schedules', args);
  readonly workers: Call<'workers'> = (...args) => this.#call('workers', args);
  readonly forecast: Call<'forecast'> = (...args) => this.#call('forecast', args);
  readonly history: Call<'history'> = (...args) => this.#call('history', args);
  readonly rollUp: Call<'rollUp'> = (...args) => this.#call('rollUp', args);
  readonly errorGroups: Call<'errorGroups'> = (...args) => this.#call('errorGroups', args);
  readonly errorHistory: Call<'errorHistory'> = (...args) => this.#call('errorHistory', args);
  readonly cancel: Call<'cancel'> = (...args) => this.#call('cancel', args);
  readonly change: Call<'change'> = (...args) => this.#call('change', args);
  readonly hold: Call<'hold'> = (...args) => this.#call('hold', args);
  readonly release: Call<'release'> = (...args) => this.#call('release', args);
  readonly changeGate: Call<'changeGate'> = (...args) => this.#call('changeGate', args);
  readonly writeLimits: Call<'writeLimits'> = (...args) => this.#call('writeLimits', args);
  readonly writeSchedule: Call<'writeSchedule'> = (...args) => this.#call('writeSchedule', args);
  readonly register: Call<'register'> = (...args) => this.#call('register', args);
  readonly retention: Call<'retention'> = (...args) => this.#call('retention', args);
  readonly writeRetention: Call<'writeRetention'> = (...args) => this.#call('writeRetention', args);
  readonly prune: Call<'prune'> = (...args) => this.#call('prune', args);

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

  #call<Verb extends RemoteVerb>(verb: Verb, args: Parameters<Store[Verb]>): ReturnType<Store[Verb]> {
    const answer = this.#isClosed
      ? Promise.reject(new ClosedError('expected an open store, got a closed one.'))
      : this.#send(verb, args);
    return answer as ReturnType<Store[Verb]>;
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
  const got = describe(scrub(url));
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
