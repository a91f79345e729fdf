import type { Random } from '../retry/jitter.ts';
import type { AnswerKind, Outage, ReadDependency } from './scenario.ts';

/** What a call ends with, and after how long. */
export interface Answer {
  readonly kind: 'ok' | AnswerKind;
  readonly durationMs: number;
}

/** How long it takes to be refused or turned away. */
const REFUSAL_MS = 5;
/** The 99th percentile of the standard normal distribution. */
const Z99 = 2.326;

/** The service that the jobs call. It has no time of its own: `nowMs` is the time since the beginning of the scenario. */
export class Dependency {
  readonly #options: ReadDependency;
  readonly #random: Random;
  readonly #load: CallRate = new CallRate();

  constructor(options: ReadDependency, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  call(nowMs: number, poison: AnswerKind | null): Answer {
    const { outages, overloadAnswer } = this.#options;
    const outage = outages.find(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs < untilMs);
    // Drawn for every call, so that one kind of trouble does not shift the random numbers of the others.
    const [byOutage, byLoad, byError, byTime] = [this.#random(), this.#random(), this.#random(), this.#random()];
    const isServed = this.#isServed(nowMs, byLoad);
    if (outage !== undefined && byOutage < outage.share) return this.#failure(outage.answer, byTime, outage);
    if (!isServed) return this.#failure(overloadAnswer, byTime, outage);
    if (poison !== null) return this.#failure(poison, byTime, outage);
    const error = this.#errorAt(byError);
    if (error !== null) return this.#failure(error, byTime, outage);
    return { kind: 'ok', durationMs: this.#serviceTimeMs(byTime, outage) };
  }

  #isServed(nowMs: number, random: number): boolean {
    const { capacity, overload } = this.#options;
    if (capacity === null) return true;
    const calls = this.#load.at(nowMs);
    if (overload === 'fails') {
      if (calls >= capacity) return false;
      this.#load.add(nowMs);
      return true;
    }
    this.#load.add(nowMs);
    const offered = calls + 1;
    const served = offered <= capacity ? offered : Math.max(0, 3 * capacity - 2 * offered);
    return random < served / offered;
  }

  #errorAt(random: number): AnswerKind | null {
    let below = 0;
    for (const { answer, share } of this.#options.errors) {
      below += share;
      if (random < below) return answer;
    }
    return null;
  }

  /** One that the service itself has looked at takes as long as an answer. */
  #failure(kind: AnswerKind, random: number, outage: Outage | undefined): Answer {
    if (kind === 'timeout') return { kind, durationMs: this.#options.callTimeoutMs };
    const isLookedAt = kind === 'bug' || kind === 'invalid';
    return { kind, durationMs: isLookedAt ? this.#serviceTimeMs(random, outage) : REFUSAL_MS };
  }

  #serviceTimeMs(random: number, outage: Outage | undefined): number {
    return timeOf(this.#options.serviceTime, random) * (outage?.slowdown ?? 1);
  }
}

function timeOf(time: ReadDependency['serviceTime'], random: number): number {
  if (time.kind !== 'lognormal') return time.kind === 'fixed' ? time.meanMs : -Math.log(1 - random) * time.meanMs;
  const sigma = Math.log(time.p99Ms / time.medianMs) / Z99;
  return time.medianMs * Math.exp(sigma * normalAt(random));
}

/**
 * The standard normal quantile, by its logistic approximation: it is off by less than 0.02 between the 1st and the 99th
 * percentile, and needs one random number.
 */
function normalAt(random: number): number {
  const p = Math.min(1 - 1e-9, Math.max(1e-9, random));
  const logit = Math.log(p / (1 - p));
  // Solves logit = 1.5976 z + 0.07056 z^3 for z.
  const [linear, cubic] = [1.5976, 0.07056];
  const half = logit / (2 * cubic);
  const root = Math.sqrt(half * half + (linear / (3 * cubic)) ** 3);
  return Math.cbrt(half + root) + Math.cbrt(half - root);
}

/** The calls of the last second. */
class CallRate {
  #times: number[] = [];
  #first = 0;

  at(nowMs: number): number {
    while (this.#first < this.#times.length && (this.#times[this.#first] as number) <= nowMs - 1_000) this.#first++;
    if (this.#first > 10_000 && this.#first > this.#times.length / 2) {
      this.#times = this.#times.slice(this.#first);
      this.#first = 0;
    }
    return this.#times.length - this.#first;
  }

  add(nowMs: number): void {
    this.#times.push(nowMs);
  }
}

/** What a client of the service throws. */
export function errorOf(kind: AnswerKind, retryAfterMs: number | null): Error {
  switch (kind) {
    case 'refused':
      return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    case 'timeout':
      return Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT' });
    case 'unavailable':
      return withStatus('Service Unavailable', 503, retryAfterMs);
    case 'too-many':
      return withStatus('Too Many Requests', 429, retryAfterMs);
    case 'invalid':
      return withStatus('Unprocessable Content', 422, null);
    case 'bug':
      return new TypeError('Cannot read properties of undefined');
  }
}

function withStatus(message: string, status: number, retryAfterMs: number | null): Error {
  const headers = retryAfterMs === null ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) };
  return Object.assign(new Error(message), { status, headers });
}
