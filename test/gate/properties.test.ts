import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../sim/random.ts';
import { emptyReport } from '../../src/gate/evidence.ts';
import {
  admissibleAt,
  admit,
  applyReport,
  closedGate,
  formatGate,
  type GateReport,
  type GateState,
  judgeFailure,
  parseGate,
  pin,
  refund,
  type Spent,
  spend,
  unpin,
} from '../../src/gate/index.ts';
import { T0 } from './facts.ts';

/* What holds for every history of reports, claims, pauses and pins, however odd. */

type Step =
  | { readonly do: 'report'; readonly facts: Partial<GateReport>; readonly isStale: boolean }
  | {
      readonly do: 'claim';
      readonly worker: number;
      readonly places: number;
      readonly due: number;
      readonly pays: 'retry' | 'nothing';
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'pin'; readonly to: 'open' | 'closed' }
  | { readonly do: 'unpin' };

const count = fc.oneof(fc.constant(0), fc.nat(5), fc.nat(200));
const bits = fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff));
const facts: fc.Arbitrary<Partial<GateReport>> = fc.record({
  worker: fc.integer({ min: 1, max: 4 }),
  alive: count,
  throttled: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  environment: count,
  none: fc.nat(2),
  tail: fc.constant(0),
  jobs: bits,
  retryAfterMs: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.nat(10_000) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 1e18, Number.NaN, Number.POSITIVE_INFINITY) },
  ),
  firstSuccesses: count,
  spanMs: fc.nat(60_000),
  slowestMs: fc.nat(100_000),
});
const claim = fc.record({
  do: fc.constant('claim' as const),
  worker: fc.integer({ min: 1, max: 4 }),
  places: fc.nat(50),
  due: fc.nat(200),
  pays: fc.constantFrom('retry' as const, 'nothing' as const),
});
const wait = fc.record({
  do: fc.constant('wait' as const),
  ms: fc.oneof(fc.nat(100), fc.nat(5_000), fc.nat(100_000), fc.constant(90_000_000)),
});
const report = fc.record({ do: fc.constant('report' as const), facts, isStale: fc.boolean() });
const free: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: report },
  { weight: 5, arbitrary: claim },
  { weight: 4, arbitrary: wait },
);
const any: fc.Arbitrary<Step> = fc.oneof(
  { weight: 14, arbitrary: free },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pin' as const), to: fc.constantFrom('open' as const, 'closed' as const) }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'unpin' as const }) },
);
const history = (step: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> => fc.array(step, { maxLength: 80, size: 'max' });

class History {
  state: GateState = closedGate(T0);
  now = T0;
  readonly random: Random;
  /** Store time and size of every start, by what paid for it. */
  readonly starts: { at: number; starts: number; pays: string; isProbe: boolean; before: GateState }[] = [];
  successes: { at: number; count: number }[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  take(step: Step): void {
    const before = this.state;
    switch (step.do) {
      case 'wait':
        this.now += step.ms;
        break;
      case 'report': {
        const epoch = step.isStale ? 1 : before.phase === 'closed' ? 0 : before.epoch;
        const claimedFrom = step.isStale ? before.epoch - 1 : before.epoch;
        const full = { ...emptyReport(1, epoch, claimedFrom, 0), ...step.facts, epoch, claimedFrom };
        this.state = applyReport(before, full, this.now, this.random.next).state;
        this.successes.push({ at: this.now, count: full.firstSuccesses });
        break;
      }
      case 'claim': {
        const { state, starts, isProbe } = admit(before, step, this.now, this.random.next);
        this.state = state;
        if (starts > 0) this.starts.push({ at: this.now, starts, pays: step.pays, isProbe, before: state });
        break;
      }
      case 'pin':
        this.state = pin(before, step.to, 'anna', this.now, this.random.next).state;
        break;
      case 'unpin':
        this.state = unpin(before, 'anna', this.now).state;
    }
  }
}

const runs = { numRuns: 150 };

describe('after any history', () => {
  test('the state is JSON of less than 4 KB that comes back as it was', () => {
    fc.assert(
      fc.property(history(any), fc.nat(), (steps, seed) => {
        const world = new History(seed);
        for (const step of steps) {
          world.take(step);
          const text = formatGate(world.state);
          expect(text.length).toBeLessThan(4_096);
          expect(formatGate(parseGate(text, world.now))).toBe(text);
          expect(world.state.phase === 'ramp').toBe(world.state.ramp !== null);
        }
      }),
      runs,
    );
  });

  test('a healthy dependency with steady traffic closes the gate within 2 hours after the last hold', () => {
    fc.assert(
      fc.property(history(free), fc.nat(), fc.constantFrom(0.2, 2, 20), (steps, seed, perSecond) => {
        const world = new History(seed);
        for (const step of steps) world.take(step);
        const end = Math.max(world.now, world.state.heldUntil) + 2 * 3_600_000;
        let waiting = 0;
        while (world.now < end) {
          world.now += 1_000;
          waiting += perSecond;
          const worker = 1 + Math.floor(world.random.next() * 2);
          const due = Math.floor(waiting);
          const request = { worker, places: 1_000, due, pays: 'nothing' } as const;
          const { state, starts, epoch } = admit(world.state, request, world.now, world.random.next);
          world.state = state;
          waiting -= starts;
          if (state.phase === 'closed' && waiting < 1) return;
          const alive = { ...emptyReport(worker, epoch, world.now, 1_000), alive: starts };
          if (starts > 0) world.state = applyReport(state, alive, world.now, world.random.next).state;
        }
        expect(`${world.state.phase} with ${waiting} waiting`).toBe('closed');
      }),
      { numRuns: 40 },
    );
  });

  test('a partition becomes admissible within an hour, and then jobs start', () => {
    fc.assert(
      fc.property(
        history(free),
        fc.nat(),
        fc.constantFrom('retry' as const, 'nothing' as const),
        (steps, seed, pays) => {
          const world = new History(seed);
          for (const step of steps) world.take(step);
          for (let turn = 0; turn < 3; turn++) {
            const at = admissibleAt(world.state, { pays, worker: 9 }, world.now);
            expect(at).toBeLessThanOrEqual(world.now + 3_600_000 + 1);
            world.now = at ?? world.now;
            const request = { worker: 9, places: 5, due: 5, pays };
            const { state, starts } = admit(world.state, request, world.now, world.random.next);
            world.state = state;
            // A lone streak that has lasted meanwhile may open the gate: then the next turn is a probe.
            if (starts > 0) return;
          }
          expect.unreachable('nothing starts');
        },
      ),
      runs,
    );
  });

  test('an open gate starts only probes, one at a time', () => {
    fc.assert(
      fc.property(history(any), fc.nat(), (steps, seed) => {
        const world = new History(seed);
        for (const step of steps) world.take(step);
        for (const { starts, isProbe, before } of world.starts) {
          expect(isProbe).toBe(before.phase === 'open');
          if (isProbe) expect([starts, before.pin]).toEqual([1, null]);
        }
      }),
      runs,
    );
  });

  test('retries stay within the budget in any span', () => {
    fc.assert(
      fc.property(history(free), fc.nat(), (steps, seed) => {
        const world = new History(seed);
        for (const step of steps) world.take(step);
        const peak = Math.max(0, ...world.starts.map(({ before }) => before.peak.rate), world.state.peak.rate);
        const floor = Math.max(1, 0.1 * peak);
        const saved = 10 * (floor + 0.2 * peak);
        const paid = world.starts.filter(({ pays, isProbe }) => pays === 'retry' && !isProbe);
        for (const { at: from } of paid) {
          for (const { at: until } of paid) {
            if (until < from) continue;
            const retries = total(
              paid.map(({ at, starts }) => ({ at, count: starts })),
              from,
              until,
            );
            const earned = 0.2 * total(world.successes, from, until) + (floor * (until - from)) / 1_000;
            expect(retries).toBeLessThanOrEqual(saved + earned + 1e-6);
          }
        }
      }),
      runs,
    );
  });
});

function total(entries: readonly { at: number; count: number }[], from: number, until: number): number {
  return entries.filter(({ at }) => at >= from && at <= until).reduce((sum, entry) => sum + entry.count, 0);
}

test('in any span of a ramp no more jobs start than its highest limit allows', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ ms: fc.nat(3_000), places: fc.nat(300), share: fc.constantFrom(0, 0, 0, 0.2) }), {
        minLength: 20,
        maxLength: 60,
      }),
      fc.nat(),
      (turns, seed) => {
        const random = new Random(seed);
        let state = closedGate(T0);
        let now = T0;
        const tell = (facts: Partial<GateReport>, epoch: number): void => {
          state = applyReport(state, { ...emptyReport(1, epoch, now, 5_000), ...facts }, now, random.next).state;
        };
        for (let i = 0; i < 8; i++, now += 5_000) tell({ alive: 300 }, 0);
        tell({ environment: 10, jobs: [0xff, 0], tail: 10 }, 0);
        now += 2_000;
        for (let i = 0; i < 3; i++) tell({ alive: 1 }, state.epoch);
        expect(state.phase).toBe('ramp');
        const starts: { at: number; count: number }[] = [];
        let highest = 0;
        for (const { ms, places, share } of turns) {
          now += ms;
          if (state.phase !== 'ramp') break;
          highest = Math.max(highest, state.ramp?.limit ?? 0);
          const admission = admit(state, { worker: 1, places, due: 1_000, pays: 'nothing' }, now, random.next);
          state = admission.state;
          if (state.phase !== 'ramp') break;
          starts.push({ at: now, count: admission.starts });
          const environment = Math.floor(admission.starts * share);
          tell({ alive: admission.starts - environment, environment, jobs: [7, 0] }, admission.epoch);
        }
        expect(highest).toBeLessThanOrEqual(1.4 * 60 + 0.1);
        for (const { at: from } of starts) {
          for (const { at: until } of starts) {
            if (until >= from)
              expect(total(starts, from, until)).toBeLessThanOrEqual(
                (highest * (until - from)) / 1_000 + highest * 0.5 + 1 + 1e-6,
              );
          }
        }
      },
    ),
    runs,
  );
});

test('each attempt is given back at most once, and none that an outage took is lost', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('fail' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('claim' as const) }) },
    { weight: 3, arbitrary: report },
    { weight: 3, arbitrary: wait },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), fc.nat(), (steps, seed) => {
      const world = new History(seed);
      let spent: Spent | null = null;
      let counted = 0;
      let refunded = 0;
      const giveBack = (): void => {
        const given = refund(world.state, spent);
        const isCovered =
          spent !== null &&
          world.state.covered.some(([from, until]) => spent !== null && spent.at >= from && spent.at <= until);
        if (isCovered) expect(given.spent).toBeNull();
        refunded += given.attempts;
        spent = given.spent;
      };
      for (const step of steps) {
        if (step.do === 'fail') {
          giveBack();
          const verdict = judgeFailure(
            world.state,
            { jobId: 'a', worker: 1, epoch: world.state.epoch, isThrottled: false, uncountedRuns: 0, isSuspect: false },
            world.now,
          );
          if (verdict.counts) {
            spent = spend(spent, world.now);
            counted++;
          }
        } else if (step.do === 'claim') giveBack();
        else world.take(step);
        expect(refunded).toBeLessThanOrEqual(counted);
      }
      const before = refunded;
      giveBack();
      giveBack();
      expect(refunded - before).toBeLessThanOrEqual(counted - before);
    }),
    runs,
  );
});
