import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import { fillQuotas } from '../store/fill.ts';
import type { QueueQuota } from '../store/store.ts';
import { type QueuePlan, Quotas } from './lanes.ts';

const plan = (queue: string, own: Partial<QueuePlan> = {}): QueuePlan => ({
  queue,
  weight: 1,
  retryShare: 0.2,
  maxRetriesInFlight: null,
  ...own,
});

/** How many due jobs wait in a lane when a claim comes; a suspect is never claimed with others. */
type Stock = (queue: string, lane: Lane) => number;
const plenty: Stock = (_, lane) => (lane === 'suspect' ? 0 : 1_000_000);
const only =
  (...lanes: Lane[]): Stock =>
  (_, lane) =>
    lanes.includes(lane) ? 1_000_000 : 0;

/** A worker that claims again and again, as the fetcher does, from queues that hold what the test says. */
class Claims {
  readonly quotas: Quotas;
  readonly #taken: { queue: string; lane: Lane }[] = [];

  constructor(...plans: QueuePlan[]) {
    this.quotas = new Quotas(plans);
  }

  claim(limit: number, stock: Stock = plenty): { queue: string; lane: Lane }[] {
    const jobs: { queue: string; lane: Lane }[] = [];
    const queues = this.quotas.next(limit);
    fillQuotas({ worker: 'worker', leaseMs: 1_000, limit, queues }, (queue, lane, wanted) => {
      const found = Math.min(wanted, stock(queue, lane) - count(jobs, queue, lane));
      for (let n = 0; n < found; n++) jobs.push({ queue, lane });
      return found;
    });
    this.quotas.settle(limit, jobs);
    this.#taken.push(...jobs);
    return jobs;
  }

  count(queue?: string, ...lanes: Lane[]): number {
    return count(this.#taken, queue, ...lanes);
  }
}

function count(jobs: readonly { queue: string; lane: Lane }[], queue?: string, ...lanes: Lane[]): number {
  return jobs.filter(
    (job) => (queue === undefined || job.queue === queue) && (lanes.length === 0 || lanes.includes(job.lane)),
  ).length;
}

const retried = ['retry', 'redrive'] as const;
const limits = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 120 });
const shares = fc.oneof(
  fc.constantFrom(0, 0.2, 0.5, 1),
  fc.integer({ min: 0, max: 1_000 }).map((thousandths) => thousandths / 1_000),
);
const plans = fc.array(fc.record({ weight: fc.integer({ min: 1, max: 20 }), retryShare: shares }), {
  minLength: 1,
  maxLength: 5,
});

describe('the share of retries and redrives, while fresh work waits', () => {
  it('is, of one queue, exactly the whole part of retryShare times the places so far, however large the claims', () => {
    fc.assert(
      fc.property(limits, shares, (sizes, retryShare) => {
        const claims = new Claims(plan('a', { retryShare }));
        let places = 0;
        for (const size of sizes) {
          claims.claim(size);
          places += size;
          expect(claims.count('a', ...retried)).toBe(Math.floor(places * retryShare + 1e-6));
        }
      }),
    );
  });

  it('is, of each of several queues, retryShare of what that queue got, give or take one claim', () => {
    fc.assert(
      fc.property(limits, plans, (sizes, own) => {
        const queues = own.map((one, index) => plan(`q${index}`, one));
        const claims = new Claims(...queues);
        for (const size of sizes) claims.claim(size);
        const largest = Math.max(...sizes);
        for (const { queue, retryShare } of queues) {
          const due = claims.count(queue) * retryShare;
          const got = claims.count(queue, ...retried);
          expect(got).toBeLessThanOrEqual(due + largest * retryShare + 1);
          expect(got).toBeGreaterThanOrEqual(due - largest * retryShare - 1);
        }
      }),
    );
  });

  it('of 0.2 lets every fifth job through when claims take one at a time', () => {
    const claims = new Claims(plan('a'));
    const lanes = Array.from({ length: 10 }, () => claims.claim(1)[0]?.lane);
    expect(lanes).toEqual([...Array(4).fill('fresh'), 'retry', ...Array(4).fill('fresh'), 'redrive']);
  });

  it('of each queue holds although another queue takes the place of most claims', () => {
    const claims = new Claims(plan('a'), plan('b'), plan('c'));
    for (let turn = 0; turn < 3_000; turn++) claims.claim(1);
    for (const queue of ['a', 'b', 'c']) expect(Math.abs(claims.count(queue, ...retried) - 200)).toBeLessThanOrEqual(1);
  });

  it('of 0 keeps them waiting, and of 1 lets them all go first', () => {
    for (const [retryShare, lane] of [
      [0, 'fresh'],
      [1, 'retry'],
    ] as const) {
      const claims = new Claims(plan('a', { retryShare }));
      for (let turn = 0; turn < 50; turn++) {
        for (const job of claims.claim(3, only('fresh', 'retry'))) expect(job.lane).toBe(lane);
      }
    }
  });

  it('is halved between retries and redrives when both wait, at any size of claim and number of queues', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 4 }), (size, howMany) => {
        const queues = Array.from({ length: howMany }, (_, index) => plan(`q${index}`));
        const claims = new Claims(...queues);
        for (let turn = 0; turn < 200; turn++) claims.claim(size);
        for (const { queue } of queues) {
          expect(Math.abs(claims.count(queue, 'retry') - claims.count(queue, 'redrive'))).toBeLessThanOrEqual(2);
        }
      }),
      { numRuns: 40 },
    );
  });

  it.each(retried)('goes to %s alone when the other lane is empty', (lane) => {
    const claims = new Claims(plan('a'));
    for (let turn = 0; turn < 100; turn++) claims.claim(5, only('fresh', lane));
    expect(claims.count('a', lane)).toBe(100);
  });

  it.each(retried)('is halved at once when jobs of the other lane join %s, which had it alone for long', (lane) => {
    for (const retryShare of [0.2, 1]) {
      for (const size of [1, 5]) {
        const claims = new Claims(plan('a', { retryShare }));
        for (let turn = 0; turn < 500; turn++) claims.claim(size, only('fresh', lane));
        const jobs = Array.from({ length: 100 }, () => claims.claim(size)).flat();
        expect(Math.abs(count(jobs, 'a', 'retry') - count(jobs, 'a', 'redrive'))).toBeLessThanOrEqual(2);
      }
    }
  });
});

describe('places that one lane leaves', () => {
  it('are taken by the other: retries get everything when nothing fresh waits', () => {
    const claims = new Claims(plan('a', { retryShare: 0 }));
    expect(count(claims.claim(10, only('retry')), 'a', 'retry')).toBe(10);
  });

  it('are not owed later: fresh work that comes back still gets its share at once', () => {
    const claims = new Claims(plan('a'));
    for (let turn = 0; turn < 100; turn++) claims.claim(10, only(...retried));
    expect(count(claims.claim(10), 'a', 'fresh')).toBe(8);
  });

  it('do not pile up: retries that come after a long time get no more than their share', () => {
    for (const size of [1, 3, 10]) {
      const claims = new Claims(plan('a'));
      for (let turn = 0; turn < 1_000; turn++) claims.claim(size, only('fresh'));
      const jobs = Array.from({ length: 10 }, () => claims.claim(size)).flat();
      expect(count(jobs, 'a', ...retried)).toBeLessThanOrEqual(2 * size + 1);
    }
  });
});

describe('several queues', () => {
  it('share the places by weight while all have work, however large the claims', () => {
    fc.assert(
      fc.property(limits, plans, (sizes, own) => {
        const queues = own.map((one, index) => plan(`q${index}`, one));
        const claims = new Claims(...queues);
        for (const size of sizes) claims.claim(size);
        const total = queues.reduce((sum, { weight }) => sum + weight, 0);
        const largest = Math.max(...sizes);
        for (const { queue, weight } of queues) {
          const due = (claims.count() * weight) / total;
          expect(Math.abs(claims.count(queue) - due)).toBeLessThanOrEqual(largest + queues.length);
        }
      }),
    );
  });

  it('take turns when claims take one job at a time', () => {
    const claims = new Claims(plan('a', { weight: 3 }), plan('b'));
    const served = Array.from({ length: 16 }, () => claims.claim(1)[0]?.queue);
    expect(served.filter((queue) => queue === 'b')).toHaveLength(4);
    for (let start = 0; start < 16; start += 4) expect(served.slice(start, start + 4)).toContain('b');
  });

  it('lend what one leaves to the others, by their weights', () => {
    const claims = new Claims(plan('a', { weight: 3 }), plan('b', { weight: 1 }), plan('idle', { weight: 4 }));
    const stock: Stock = (queue, lane) => (queue === 'idle' ? 0 : plenty(queue, lane));
    for (let turn = 0; turn < 200; turn++) expect(claims.claim(4, stock)).toHaveLength(4);
    expect(claims.count('a')).toBeGreaterThanOrEqual(595);
    expect(claims.count('b')).toBeGreaterThanOrEqual(195);
  });

  it('save nothing up while idle: a queue that wakes up gets its share, not all it missed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 300 }), (size, turns) => {
        const claims = new Claims(plan('a'), plan('b'));
        for (let turn = 0; turn < turns; turn++)
          claims.claim(size, (queue, lane) => (queue === 'b' ? 0 : plenty(queue, lane)));
        const jobs = Array.from({ length: 20 }, () => claims.claim(size)).flat();
        expect(Math.abs(count(jobs, 'b') - 10 * size)).toBeLessThanOrEqual(size + 2);
      }),
    );
  });

  it('are served in the order of what they are owed', () => {
    const claims = new Claims(plan('a'), plan('b'), plan('c', { weight: 4 }));
    const order = (): string[] => claims.quotas.next(1).map(({ queue }) => queue);
    expect(order()).toEqual(['c', 'a', 'b']);
    claims.claim(1, (queue, lane) => (queue === 'c' && lane === 'fresh' ? 1 : 0));
    claims.claim(1, (queue, lane) => (queue === 'a' && lane === 'fresh' ? 1 : 0));
    expect(order()).toEqual(['c', 'b', 'a']);
  });

  it('owe each other nothing once everything that was due has been claimed', () => {
    const claims = new Claims(plan('a'), plan('b'));
    // Exactly its share each time, and the rest of the claim stays empty.
    const half: Stock = (queue, lane) => (queue === 'a' && lane === 'fresh' ? 5 : 0);
    for (let turn = 0; turn < 5; turn++) {
      expect(claims.claim(10, half)).toHaveLength(5);
      expect(claims.quotas.next(10)).toMatchObject([{ share: 5 }, { share: 5 }]);
    }
  });
});

describe('quotas', () => {
  it('never ask for more places than the claim has, nor for fewer than none, whatever waits where', () => {
    const waiting = fc.array(
      fc
        .constantFrom('q0', 'q1', 'q2')
        .chain((queue) => fc.constantFrom<Lane>('fresh', ...retried).map((lane) => `${queue} ${lane}`)),
      { maxLength: 9 },
    );
    const turns = fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), waiting), { maxLength: 30 });
    const three = fc.tuple(...Array(3).fill(fc.record({ weight: fc.integer({ min: 1, max: 3 }), retryShare: shares })));
    fc.assert(
      fc.property(turns, three, (all, own) => {
        const claims = new Claims(...own.map((one, index) => plan(`q${index}`, one as Partial<QueuePlan>)));
        for (const [size, stock] of all) {
          claims.claim(size, (queue, lane) => (stock.includes(`${queue} ${lane}`) ? 100 : 0));
          for (const next of [1, size]) {
            for (const { share, retry, redrive } of claims.quotas.next(next)) {
              for (const places of [share, retry, redrive]) expect(Number.isInteger(places) && places >= 0).toBe(true);
              expect(Math.max(share, retry + redrive)).toBeLessThanOrEqual(next);
            }
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('of claims that the store did not answer change nothing', () => {
    const claims = new Claims(plan('a'), plan('b'));
    const expected = claims.quotas.next(3);
    for (let outage = 0; outage < 100; outage++) claims.quotas.next(3);
    expect(claims.quotas.next(3)).toEqual(expected);
  });

  it('carry the cap on retries in flight of their queue', () => {
    const quotas = new Quotas([plan('a', { maxRetriesInFlight: 7 }), plan('b')]);
    const caps = (all: QueueQuota[]) => Object.fromEntries(all.map((one) => [one.queue, one.maxRetriesInFlight]));
    expect(caps(quotas.next(5))).toEqual({ a: 7, b: null });
    expect(caps(quotas.suspect())).toEqual({ a: 7, b: null });
  });

  it('ask for suspects of each queue first in turn, so that many of one cannot starve those of another', () => {
    const quotas = new Quotas([plan('a'), plan('b'), plan('c')]);
    const orders = [0, 1, 2, 3].map(() => quotas.suspect().map(({ queue }) => queue));
    expect(orders.map((order) => order.join(''))).toEqual(['abc', 'bca', 'cab', 'abc']);
  });

  it('ask for suspects only when told to, and then for one alone', () => {
    const quotas = new Quotas([plan('a'), plan('b')]);
    for (const quota of quotas.next(5)) expect(quota.suspect).toBe(0);
    for (const quota of quotas.suspect()) expect(quota).toMatchObject({ share: 1, suspect: 1, retry: 0, redrive: 0 });
  });
});
