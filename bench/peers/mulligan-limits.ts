import type { ClaimRequest, LimitedClaim, LimitWrite, Store } from '../../dist/store/store.js';
import { chunks, wall } from '../harness/measure.ts';
import type { Limited } from '../harness/peer.ts';
import { completeAll, enqueueMany, KEPT_LEASE_MS, LIMIT, quota } from './mulligan.ts';
import type { Filled } from './mulligan-gates.ts';

/* Limits of Mulligan's stores, filled and claimed from by their own verbs. */

const WORKER = 'bench-claims';
const FULL = 'full-';
const OPEN = 'open-';
const NEVER_BINDS = 1_000_000;
const AT_ONCE = 1_000;

export class MulliganLimits implements Limited {
  readonly #store: Store;
  readonly #filled: Filled;
  readonly #crowdKey: string;

  constructor(store: Store, filled: Filled, crowdKey: string) {
    this.#store = store;
    this.#filled = filled;
    this.#crowdKey = crowdKey;
  }

  crowd(jobs: number): Promise<void> {
    const limits = [{ limit: LIMIT, key: this.#crowdKey }];
    return this.#filled((store) => enqueueMany(store, jobs, () => ({ kind: 'work', n: -1, resource: null, limits })));
  }

  fill(jobs: number, keys: number, full: number): Promise<void> {
    const each = jobs / keys;
    return this.#filled(async (store) => {
      await store.writeLimits([allow(null, 1)]);
      await enqueueKeys(store, FULL, 0, full, each);
      await serveEach(store, full);
      await enqueueKeys(store, OPEN, full, keys, each);
      for (const claimed of await serveEach(store, keys - full)) await completeAll(store, WORKER, claimed);
      // Beside full keys, they have a concurrency of their own, as tiers of customers do.
      const open = Array.from({ length: keys - full }, (_, n) => allow(OPEN + (full + n), NEVER_BINDS));
      for (const some of chunks(full > 0 ? open : [allow(null, NEVER_BINDS)], AT_ONCE)) await store.writeLimits(some);
    });
  }

  async claim(limit: number): Promise<number> {
    const startedAt = wall();
    const claimed = await this.#store.claimLimited(request(limit));
    const tookMs = wall() - startedAt;
    if (claimed.jobs.length !== limit) throw new Error(`wrong: a claim of ${limit} got ${claimed.jobs.length}`);
    const wrong = claimed.jobs.find(({ limits }) => limits[0]?.key.startsWith(FULL));
    if (wrong !== undefined) throw new Error(`wrong: a claim took a job of ${wrong.limits[0]?.key}, which is full`);
    await completeAll(this.#store, WORKER, claimed);
    return tookMs;
  }
}

function allow(key: string | null, concurrency: number): LimitWrite {
  return { limit: LIMIT, key, source: 'code', settings: { concurrency } };
}

/** The jobs of a key one after the other: a call then concerns few keys, which is faster. */
function enqueueKeys(store: Store, prefix: string, from: number, to: number, each: number): Promise<void> {
  return enqueueMany(store, (to - from) * each, (n) => {
    const key = prefix + (from + Math.floor(n / each));
    return { kind: 'noop', resource: null, limits: [{ limit: LIMIT, key }] };
  });
}

/** Claims all that may start, while each of so many keys lets one; the jobs stay claimed. */
async function serveEach(store: Store, keys: number): Promise<LimitedClaim[]> {
  const claims: LimitedClaim[] = [];
  for (let served = 0; served < keys; ) {
    const claimed = await store.claimLimited(request(AT_ONCE));
    if (claimed.jobs.length === 0)
      throw new Error(`wrong: ${served} of ${keys} keys have been served, and no other is`);
    served += claimed.jobs.length;
    claims.push(claimed);
  }
  return claims;
}

function request(limit: number): ClaimRequest {
  return { worker: WORKER, leaseMs: KEPT_LEASE_MS, limit, queues: [{ ...quota(limit), retry: 0 }] };
}
