import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import { claimRequest, quota } from './conformance/builders.ts';
import { fillLines, fillQuotas, fillTurns } from './fill.ts';
import type { ClaimRequest, QueueQuota } from './store.ts';
import { Turns } from './turns.ts';

type Stock = Record<Lane, number>;

const none: Stock = { fresh: 0, retry: 0, redrive: 0, suspect: 0 };

/** Fills a claim from lanes that hold so many due jobs each. */
function fill(
  request: ClaimRequest,
  stocks: Readonly<Record<string, Stock>>,
): { total: number; taken: Map<string, Stock> } {
  const left = structuredClone(stocks) as Record<string, Stock>;
  const taken = new Map(Object.keys(stocks).map((queue) => [queue, { ...none }]));
  const total = fillQuotas(request, (queue, lane, count) => {
    expect(count).toBeGreaterThan(0);
    const found = Math.min(count, (left[queue] as Stock)[lane]);
    (left[queue] as Stock)[lane] -= found;
    (taken.get(queue) as Stock)[lane] += found;
    return found;
  });
  return { total, taken };
}

function fillOne(limit: number, given: Partial<QueueQuota>, stock: Partial<Stock>): Stock {
  const request = claimRequest({ limit, queues: [quota({ queue: 'q', ...given })] });
  return fill(request, { q: { ...none, ...stock } }).taken.get('q') as Stock;
}

const sum = (stock: Stock): number => stock.fresh + stock.retry + stock.redrive + stock.suspect;

describe('fillQuotas', () => {
  it('takes retries in their places and gives the rest to fresh work', () => {
    expect(fillOne(10, { retry: 2 }, { fresh: 50, retry: 50 })).toEqual({ ...none, retry: 2, fresh: 8 });
  });

  it('lets a retry through even when a claim takes one job', () => {
    expect(fillOne(1, { retry: 1 }, { fresh: 50, retry: 50 })).toEqual({ ...none, retry: 1 });
  });

  it('gives fresh work what retries and redrives leave', () => {
    expect(fillOne(10, { retry: 4, redrive: 4 }, { fresh: 50, retry: 1 })).toEqual({ ...none, retry: 1, fresh: 9 });
  });

  it('gives retries and redrives what fresh work leaves', () => {
    const taken = fillOne(10, { retry: 1, redrive: 1 }, { fresh: 2, retry: 4, redrive: 50 });
    expect(taken).toEqual({ ...none, fresh: 2, retry: 4, redrive: 4 });
  });

  it('lends the places of an empty lane to the other before fresh work gets them', () => {
    expect(fillOne(10, { retry: 2, redrive: 1 }, { fresh: 50, redrive: 50 })).toMatchObject({ redrive: 3, fresh: 7 });
    expect(fillOne(10, { retry: 2, redrive: 1 }, { fresh: 50, retry: 50 })).toMatchObject({ retry: 3, fresh: 7 });
  });

  it('takes suspects in a claim for them, and only there', () => {
    expect(fillOne(9, { suspect: 2, retry: 1 }, { fresh: 9, retry: 9, suspect: 9 })).toEqual({ ...none, suspect: 2 });
    expect(fillOne(9, { suspect: 1, retry: 1 }, { fresh: 9, retry: 9 })).toEqual(none);
    expect(fillOne(9, {}, { suspect: 9 })).toEqual(none);
  });

  it('serves shares first, then the queues in turn', () => {
    const queues = [quota({ queue: 'a', share: 2 }), quota({ queue: 'b', share: 3 }), quota({ queue: 'c', share: 1 })];
    const stock = { ...none, fresh: 50 };
    const { taken } = fill(claimRequest({ limit: 9, queues }), { a: stock, b: { ...none, fresh: 1 }, c: stock });
    expect([...taken.values()].map((each) => each.fresh)).toEqual([7, 1, 1]);
  });

  it('asks an empty lane only once', () => {
    const asked: Lane[] = [];
    fillQuotas(
      claimRequest({
        limit: 9,
        queues: [quota({ share: 3, retry: 2, redrive: 2 }), quota({ queue: 'b', share: 3, suspect: 1 })],
      }),
      (_, lane) => {
        asked.push(lane);
        return 0;
      },
    );
    expect(asked.toSorted()).toEqual(['fresh', 'redrive', 'retry', 'suspect']);
  });
});

/** How many jobs of a queue a claim could take, had it places enough. */
function within({ stock, quota }: { stock: Stock; quota: Pick<QueueQuota, 'suspect'> }): number {
  return quota.suspect > 0 ? Math.min(stock.suspect, quota.suspect) : sum({ ...stock, suspect: 0 });
}

const few = fc.nat(12);
const anyQueue = fc.record({
  quota: fc.record({ share: few, retry: few, redrive: few, suspect: fc.nat(2) }),
  stock: fc.record({ fresh: few, retry: few, redrive: few, suspect: few }),
});

/** A claim over up to four queues, filled. */
const anyFill = fc.record({ limit: fc.nat(60), queues: fc.array(anyQueue, { maxLength: 4 }) }).map((given) => {
  const quotas = given.queues.map((each, index) => quota({ queue: `q${index}`, ...each.quota }));
  const stocks = Object.fromEntries(given.queues.map((each, index) => [`q${index}`, each.stock]));
  const { total, taken } = fill(claimRequest({ limit: given.limit, queues: quotas }), stocks);
  const queues = quotas.map((each) => ({
    quota: each,
    stock: stocks[each.queue] as Stock,
    taken: taken.get(each.queue) as Stock,
  }));
  return { limit: given.limit, total, queues };
});

describe('fillQuotas, for any claim', () => {
  it('never takes more than the limit, and tells how many it took', () => {
    fc.assert(
      fc.property(anyFill, ({ limit, total, queues }) => {
        expect(total).toBeLessThanOrEqual(limit);
        expect(total).toBe(queues.reduce((all, { taken }) => all + sum(taken), 0));
      }),
    );
  });

  it('leaves no place empty while any job could take it', () => {
    fc.assert(
      fc.property(anyFill, ({ limit, total, queues }) => {
        const could = queues.reduce((all, queue) => all + within(queue), 0);
        expect(total).toBe(Math.min(limit, could));
      }),
    );
  });

  it('never takes more retries and redrives than were kept for them while fresh work waits', () => {
    fc.assert(
      fc.property(anyFill, ({ queues }) => {
        for (const { quota, stock, taken } of queues) {
          expect(taken.suspect).toBeLessThanOrEqual(quota.suspect);
          if (quota.suspect > 0) expect(sum(taken)).toBe(taken.suspect);
          if (taken.fresh < stock.fresh)
            expect(taken.retry + taken.redrive).toBeLessThanOrEqual(quota.retry + quota.redrive);
        }
      }),
    );
  });

  it('gives fresh work all places but the kept ones while it waits', () => {
    fc.assert(
      fc.property(fc.nat(40), anyQueue, (limit, { quota: given, stock }) => {
        const taken = fillOne(limit, { ...given, suspect: 0 }, stock);
        const due = Math.min(stock.fresh, limit - given.retry - given.redrive);
        expect(taken.fresh).toBeGreaterThanOrEqual(due);
      }),
    );
  });

  it('always lets a retry through where a place is kept for one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), anyQueue, (limit, { quota: given, stock }) => {
        fc.pre(given.retry > 0 && stock.retry > 0);
        expect(fillOne(limit, { ...given, suspect: 0 }, stock).retry).toBeGreaterThan(0);
      }),
    );
  });

  it('gives every queue its share, as far as it has work, when the shares fit the limit', () => {
    fc.assert(
      fc.property(anyFill, ({ limit, queues }) => {
        fc.pre(queues.reduce((all, { quota }) => all + quota.share, 0) <= limit);
        for (const { quota, stock, taken } of queues) {
          expect(sum(taken)).toBeGreaterThanOrEqual(Math.min(quota.share, within({ stock, quota })));
        }
      }),
    );
  });
});

describe('fillTurns', () => {
  /** What each partition gives, of so many due jobs each. */
  const turns = (places: number, ...due: number[]): number[] => {
    const taken = due.map(() => 0);
    fillTurns([...due.keys()], places, (partition, count) => {
      expect(count).toBeGreaterThan(0);
      const found = Math.min(count, (due[partition] as number) - (taken[partition] as number));
      taken[partition] = (taken[partition] as number) + found;
      return found;
    });
    return taken;
  };

  it('gives a single partition all places', () => {
    expect(turns(7, 100)).toEqual([7]);
  });

  it('shares places equally', () => {
    expect(turns(9, 100, 100, 100)).toEqual([3, 3, 3]);
  });

  it('gives the least recently served partitions what cannot be shared equally', () => {
    expect(turns(2, 100, 100, 100)).toEqual([1, 1, 0]);
    expect(turns(10, 100, 100, 100)).toEqual([4, 3, 3]);
  });

  it('gives the others what a partition leaves, also those that came before it', () => {
    expect(turns(9, 100, 100, 1)).toEqual([4, 4, 1]);
    expect(turns(9, 1, 100, 100)).toEqual([1, 4, 4]);
    expect(turns(9, 1, 1, 1)).toEqual([1, 1, 1]);
  });

  it('takes nothing when there are no places or no partitions', () => {
    expect(turns(0, 5, 5)).toEqual([0, 0]);
    expect(turns(5)).toEqual([]);
  });

  it('leaves no place empty while a partition has due jobs, and no partition more than one place behind a richer one', () => {
    const due = fc.array(fc.nat(20), { maxLength: 12 });
    fc.assert(
      fc.property(fc.nat(60), due, (places, waiting) => {
        const taken = turns(places, ...waiting);
        const total = taken.reduce((sum, one) => sum + one, 0);
        const available = waiting.reduce((sum, one) => sum + one, 0);
        expect(total).toBe(Math.min(places, available));
        const wanting = taken.filter((one, index) => one < (waiting[index] as number));
        for (const one of wanting) expect(Math.max(...taken) - one).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('fillLines', () => {
  const take = (places: number, turns: Turns, ...partitions: string[]): Record<string, number> => {
    const taken: Record<string, number> = {};
    const lineOf = (partition: string): string => partition.split('/')[0] as string;
    fillLines(partitions, places, turns, lineOf, (partition, count) => {
      taken[partition] = (taken[partition] ?? 0) + count;
      turns.served(lineOf(partition));
      return count;
    });
    return taken;
  };

  it('shares places among lines first, and then among the partitions of each', () => {
    expect(take(8, new Turns(), 'a/1', 'a/2', 'a/3', 'a/4', 'b')).toEqual({
      'a/1': 1,
      'a/2': 1,
      'a/3': 1,
      'a/4': 1,
      b: 4,
    });
  });

  it('begins with the line that was served least recently', () => {
    const turns = new Turns();
    const first = [1, 2, 3, 4].map(() => Object.keys(take(1, turns, 'a/1', 'a/2', 'b'))[0]);
    expect(first).toEqual(['a/1', 'b', 'a/1', 'b']);
  });
});
