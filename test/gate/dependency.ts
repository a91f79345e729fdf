import type { Random } from '../../sim/random.ts';

/** What a toy dependency answers to a call. */
export interface Answer {
  /** `bug`: the job fails by its own fault. */
  readonly kind: 'ok' | 'down' | 'unavailable' | 'too-many' | 'bug';
  readonly durationMs: number;
  readonly retryAfterMs?: number;
}

export interface Dependency {
  call(now: number, worker: number, jobId: string, input: number): Answer;
}

const ok: Answer = { kind: 'ok', durationMs: 50 };
const refused: Answer = { kind: 'down', durationMs: 5 };

/** Serves everything, except while `isDown` says so: it then refuses connections, or answers 503. */
export function switched(isDown: (now: number) => boolean, kind: 'down' | 'unavailable' = 'down'): Dependency {
  return { call: (now) => (isDown(now) ? { ...refused, kind } : ok) };
}

/** Fails a part of all calls, whatever their rate. */
export function halfBroken(share: number, random: Random, isDown: (now: number) => boolean = () => false): Dependency {
  return { call: (now) => (isDown(now) || random.chance(share) ? refused : ok) };
}

/** One worker has no DNS: its calls fail, those of the others do not. */
export function oneBadWorker(bad: number): Dependency {
  return { call: (_, worker) => (worker === bad ? refused : ok) };
}

/** Some jobs always time out, whatever the dependency does. */
export function poisoned(isPoison: (jobId: string) => boolean, isDown: (now: number) => boolean): Dependency {
  return { call: (now, _, jobId) => (isDown(now) || isPoison(jobId) ? refused : ok) };
}

/** Calls of the last second: what load a server feels. */
export class CallRate {
  readonly #times: number[] = [];
  #from = 0;

  add(now: number): number {
    this.#times.push(now);
    while ((this.#times[this.#from] as number) <= now - 1_000) this.#from++;
    return this.#times.length - this.#from;
  }
}

/**
 * Each call beyond the capacity costs two others: above it, goodput falls by 2 per call, to nothing at 1.5 times the
 * capacity. Retries then feed the overload that they come from.
 */
export function metastable(capacity: number, random: Random, isDown: (now: number) => boolean): Dependency {
  const rate = new CallRate();
  return {
    call: (now) => {
      const calls = rate.add(now);
      if (isDown(now)) return refused;
      const served = calls <= capacity ? calls : Math.max(0, 3 * capacity - 2 * calls);
      return random.chance(served / calls) ? ok : refused;
    },
  };
}

/** Answers 429 above its quota of calls in a second. */
export function quota(perSecond: number, retryAfterMs: number): Dependency {
  const rate = new CallRate();
  return {
    call: (now) => (rate.add(now) <= perSecond ? ok : { kind: 'too-many', durationMs: 5, retryAfterMs }),
  };
}
