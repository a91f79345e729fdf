import type { Claim, ClaimedJob, Store } from '../store/store.ts';

/** A store whose claims give `maxJobs` jobs in all, and then none, as if nothing were due. */
export function withBudget(store: Store, maxJobs: number): { readonly store: Store; readonly isSpent: () => boolean } {
  let left = maxJobs;
  let now = 0;
  const spend = async <Answer extends Pick<Claim, 'now'> & { readonly jobs: readonly ClaimedJob[] }>(
    limit: number,
    empty: (now: number) => Answer,
    claim: (limit: number) => Promise<Answer>,
  ): Promise<Answer> => {
    if (left === 0) return empty(now);
    const answer = await claim(Math.min(limit, left));
    now = answer.now;
    left -= Math.min(left, answer.jobs.length);
    return answer;
  };
  const claims: Pick<Store, 'claim' | 'claimGated' | 'claimLimited'> = {
    claim: (request) =>
      spend(
        request.limit,
        (at) => ({ jobs: [], now: at, nextDueAt: null, suspectsWait: false, gated: [], limited: false }),
        (limit) => store.claim({ ...request, limit }),
      ),
    claimGated: (request) =>
      spend(
        request.limit,
        (at) => ({ jobs: [], now: at, nextAt: null, events: [] }),
        (limit) => store.claimGated({ ...request, limit }),
      ),
    claimLimited: (request) =>
      spend(
        request.limit,
        (at) => ({ jobs: [], now: at, nextAt: null }),
        (limit) => store.claimLimited({ ...request, limit }),
      ),
  };
  const budgeted = new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(claims, name)) return claims[name as keyof typeof claims];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { store: budgeted, isSpent: () => left === 0 };
}
