import fc from 'fast-check';
import type { LimitKey, LimitSettings } from '../../src/limit/limit.ts';
import type { LimitOverride, LimitWrite, NewJob, QueueQuota } from '../../src/store/store.ts';

/* Random sequences of store calls on jobs behind limits. */

export const QUEUES = ['default', 'second'] as const;
export const LEASE_MS = 10_000;
export const BACKOFF_MS = 700;

export type Ending = 'complete' | 'retry' | 'snooze' | 'release' | 'die';

export type Step =
  | { readonly do: 'enqueue'; readonly job: JobTraits }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'write'; readonly write: LimitWrite }
  | { readonly do: 'claim' | 'claimLimited'; readonly limit: number; readonly quota: Quota }
  | { readonly do: 'claimGated'; readonly limit: number; readonly quota: Quota; readonly resource: string }
  | { readonly do: 'try'; readonly queue: string }
  /** Of those that run, in the order of their ids. */
  | { readonly do: 'settle'; readonly index: number; readonly ending: Ending }
  | { readonly do: 'crash' }
  | { readonly do: 'cancel'; readonly index: number }
  | { readonly do: 'redrive' | 'runNow' }
  | { readonly do: 'hold' | 'release'; readonly queue: string }
  | { readonly do: 'pin'; readonly resource: string; readonly order: 'open' | 'close' | 'unpin' };

type Quota = Pick<QueueQuota, 'retry' | 'redrive' | 'maxRetriesInFlight'>;
export type JobTraits = Pick<NewJob, 'queue' | 'name' | 'resource' | 'priority' | 'delayMs' | 'limits'>;

export interface Scene {
  readonly limits: readonly { readonly name: string; readonly settings: LimitSettings }[];
  readonly steps: readonly Step[];
}

const RESOURCES = ['mail', 'payments'] as const;
const KEYS = ['a', 'b', 'c'] as const;

const orNull = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { nil: null, freq: 2 });

const rates = fc
  .record({ limit: fc.integer({ min: 1, max: 6 }), perMs: fc.constantFrom(300, 1_000, 4_000), part: fc.nat(5) })
  .map(({ limit, perMs, part }) => ({ limit, perMs, burst: 1 + (part % limit) }));

const counts = fc.integer({ min: 1, max: 3 });
const shares: fc.Arbitrary<Quota> = fc.record({
  retry: fc.nat(2),
  redrive: fc.nat(1),
  maxRetriesInFlight: orNull(counts),
});

function settings({ withTotal }: { readonly withTotal: boolean }): fc.Arbitrary<LimitSettings> {
  return fc.record({
    concurrency: orNull(counts),
    total: withTotal ? orNull(fc.integer({ min: 1, max: 4 })) : fc.constant(null),
    rate: orNull(rates),
  });
}

function writes(names: readonly string[], all: fc.Arbitrary<LimitSettings>): fc.Arbitrary<LimitWrite> {
  const some: fc.Arbitrary<LimitOverride | null> = fc
    .tuple(all, fc.constantFrom('concurrency', 'rate', 'all', 'none'))
    .map(([said, which]) => (which === 'none' ? null : which === 'all' ? said : { [which]: said[which] }));
  return fc
    .tuple(fc.constantFrom(...names), orNull(fc.constantFrom(...KEYS)), some)
    .map(([limit, key, settings]): LimitWrite => {
      if (key === null || settings === null) return { limit, key, source: 'set', settings };
      const { total: _, ...ofKey } = settings;
      return { limit, key, source: 'set', settings: ofKey };
    });
}

/** Most are claims and settlements. */
function steps(
  jobs: fc.Arbitrary<JobTraits>,
  write: fc.Arbitrary<LimitWrite>,
  limit: fc.Arbitrary<number>,
): fc.Arbitrary<Step> {
  const index = fc.nat(20);
  const queue = fc.constantFrom(...QUEUES);
  const resource = fc.constantFrom(...RESOURCES);
  const endings = fc.constantFrom<Ending>('complete', 'retry', 'retry', 'snooze', 'release', 'die');
  const step = <T extends object>(weight: number, what: Step['do'], rest: fc.Arbitrary<T>) => ({
    weight,
    arbitrary: rest.map((given) => ({ do: what, ...given }) as unknown as Step),
  });
  const nothing = fc.constant({});
  return fc.oneof(
    step(6, 'enqueue', fc.record({ job: jobs })),
    step(5, 'advance', fc.record({ ms: fc.constantFrom(0, 1, 40, 150, 333, 700, 3_000) })),
    step(1, 'write', fc.record({ write })),
    step(2, 'claim', fc.record({ limit, quota: shares })),
    step(6, 'claimLimited', fc.record({ limit, quota: shares })),
    step(1, 'claimGated', fc.record({ limit, quota: shares, resource })),
    step(1, 'try', fc.record({ queue })),
    step(8, 'settle', fc.record({ index, ending: endings })),
    step(1, 'crash', nothing),
    step(1, 'cancel', fc.record({ index })),
    step(1, 'redrive', nothing),
    step(1, 'runNow', nothing),
    step(1, 'hold', fc.record({ queue })),
    step(2, 'release', fc.record({ queue })),
    step(1, 'pin', fc.record({ resource, order: fc.constantFrom('open', 'close', 'unpin') })),
  );
}

/** One or two limits, totals, names and resources that have nothing to do with the keys, and claims of any size. */
export const anyScene: fc.Arbitrary<Scene> = fc.record({
  limits: fc.tuple(settings({ withTotal: true }), settings({ withTotal: true })).map(([shop, tenant]) => [
    { name: 'shop', settings: shop },
    { name: 'tenant', settings: tenant },
  ]),
  steps: fc.array(
    steps(
      fc.record({
        queue: fc.constantFrom(...QUEUES),
        name: fc.constantFrom('one', 'two'),
        resource: orNull(fc.constantFrom(...RESOURCES)),
        priority: fc.constantFrom(3, 5),
        delayMs: fc.constantFrom(0, 0, 500),
        limits: fc.constantFrom('shop', 'tenant', 'both', 'none').chain(limitsOf),
      }),
      writes(['shop', 'tenant'], settings({ withTotal: true })),
      fc.constantFrom(1, 2, 5, 100),
    ),
    { minLength: 20, maxLength: 80, size: 'max' },
  ),
});

function limitsOf(which: 'shop' | 'tenant' | 'both' | 'none'): fc.Arbitrary<readonly LimitKey[]> {
  const names = which === 'both' ? ['shop', 'tenant'] : which === 'none' ? [] : [which];
  return fc.tuple(...names.map((limit) => fc.constantFrom(...KEYS).map((key) => ({ limit, key }))));
}

/**
 * One limit without a total, queues and resources that follow from the key, claims that are never filled, and no trials:
 * then rules leave no choice, and all stores take the same jobs.
 */
export const determinedScene: fc.Arbitrary<Scene> = fc.record({
  limits: settings({ withTotal: false }).map((shop) => [{ name: 'shop', settings: shop }]),
  steps: fc.array(
    steps(
      fc
        .record({
          key: fc.constantFrom(...KEYS),
          priority: fc.constantFrom(3, 5),
          delayMs: fc.constantFrom(0, 0, 500),
        })
        .map(({ key, ...job }) => ({
          ...job,
          name: 'one',
          queue: key === 'c' ? 'second' : 'default',
          resource: key === 'a' ? 'mail' : null,
          limits: [{ limit: 'shop', key }],
        })),
      writes(['shop'], settings({ withTotal: false })),
      fc.constant(1_000),
    ).filter((step) => step.do !== 'try'),
    { minLength: 20, maxLength: 80, size: 'max' },
  ),
});
