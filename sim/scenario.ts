import { dependencies, simPolicies } from './jobs.ts';
import { randomLimits, type SimLimits, withOnLimit } from './limits.ts';
import { Random } from './random.ts';

/** Names that share a dependency. */
const groups: readonly (readonly string[])[] = [['short', 'wandering', 'fragile'], ['bounded'], ['spread'], ['steady']];

/** Everything that is decided before a run begins; printed with its seed. */
export interface Scenario {
  readonly seed: number;
  readonly workers: number;
  readonly jobs: number;
  readonly leaseMs: number;
  readonly concurrency: number;
  readonly retryShare: number;
  readonly maxRetriesInFlight: number | null;
  /** How long faults go on. */
  readonly faultsForMs: number;
  readonly probability: {
    readonly lost: number;
    readonly refused: number;
    readonly hangs: number;
    /** Per call: the caller dies right before or after it. */
    readonly crash: number;
    readonly wakeUpLost: number;
  };
  /** Per second of the fault phase. */
  readonly perSecond: {
    readonly pause: number;
    readonly clockStep: number;
    readonly storeAway: number;
    readonly fullDisk: number;
    readonly operator: number;
  };
  readonly slowestCallMs: number;
  /** A part of all names: with few of them, one gate sees all that happens. */
  readonly names: readonly string[] | null;
  /** Names that workers of the deploy before cannot run, and why; null when all workers are of one deploy. */
  readonly oldDeploy: Readonly<Record<string, Unable>> | null;
  /** When a dependency is down, in ms since the start. All are up once faults are over. */
  readonly outages: readonly { readonly dependency: string; readonly from: number; readonly to: number }[];
  /** Schedules that the producer sets at the start. */
  readonly schedules: readonly SimSchedule[];
  readonly limits: SimLimits;
  /** The part of the jobs with keys that are throttled. */
  readonly throttled: number;
}

export interface SimSchedule {
  readonly everyMs: number;
  readonly overlap: 'allow' | 'skip';
}

/** It does not know the name, or an older version of it, or its schema rejects the payload. */
export const unables = ['absent', 'older', 'rejects'] as const;
export type Unable = (typeof unables)[number];

/** Drawn apart from all else, so that the other scenarios are what they were. */
function oldDeployOf(seed: number): Scenario['oldDeploy'] {
  const random = new Random(seed + 1_000_003);
  if (!random.chance(0.3)) return null;
  const names = Object.keys(simPolicies).filter(() => random.chance(0.5));
  return Object.fromEntries(names.map((name) => [name, random.pick(unables)]));
}

export function randomScenario(seed: number): Scenario {
  const random = new Random(seed);
  const maybe = (most: number): number => (random.chance(0.4) ? 0 : random.next() * most);
  const scenario = {
    seed,
    workers: random.whole(1, 3),
    jobs: random.whole(1, 25),
    leaseMs: random.pick([1_000, 2_000, 5_000]),
    concurrency: random.whole(1, 5),
    retryShare: random.pick([0, 0.2, 0.2, 0.5, 1]),
    maxRetriesInFlight: random.chance(0.3) ? random.whole(1, 3) : null,
    faultsForMs: random.whole(2_000, 30_000),
    probability: {
      lost: maybe(0.15),
      refused: maybe(0.15),
      hangs: maybe(0.05),
      crash: maybe(0.02),
      wakeUpLost: random.pick([0, 0.5, 1]),
    },
    perSecond: {
      pause: maybe(0.2),
      clockStep: maybe(0.2),
      storeAway: maybe(0.1),
      fullDisk: maybe(0.1),
      operator: maybe(1),
    },
    slowestCallMs: random.pick([0, 5, 50, 400]),
    oldDeploy: oldDeployOf(seed),
  };
  const schedules = randomSchedules(new Random(seed + SCHEDULE_SEEDS));
  const waiting = randomLimits(new Random(seed + LIMIT_SEEDS), Object.keys(simPolicies));
  const limits = withOnLimit(waiting, new Random(seed + ON_LIMIT_SEEDS));
  const throttled = new Random(seed + THROTTLE_SEEDS).chance(0.6) ? 0 : 0.5;
  return random.chance(0.5)
    ? { ...scenario, names: null, outages: [], schedules, limits, throttled }
    : { ...withOutages(scenario, random), schedules, limits, throttled };
}

/** Streams of their own, so that the rest of a scenario is the same with and without them. */
const SCHEDULE_SEEDS = 1_000_003;
const LIMIT_SEEDS = 3_000_017;
const ON_LIMIT_SEEDS = 5_000_011;
const THROTTLE_SEEDS = 6_000_011;
const OLD_DEPLOY_SEEDS = 8_000_009;

function randomSchedules(random: Random): SimSchedule[] {
  if (random.chance(0.6)) return [];
  return Array.from({ length: random.whole(1, 2) }, () => ({
    everyMs: random.pick([1_000, 1_000, 3_000, 10_000]),
    overlap: random.pick(['allow', 'allow', 'skip'] as const),
  }));
}

/** Longer, so that a gate can open, recover and close; and with more jobs, so that there is something to hold. */
function withOutages(
  scenario: Omit<Scenario, 'names' | 'outages' | 'schedules' | 'limits' | 'throttled'>,
  random: Random,
): Omit<Scenario, 'schedules' | 'limits' | 'throttled'> {
  const faultsForMs = random.whole(10_000, 90_000);
  const outages = Array.from({ length: random.whole(1, 3) }, () => {
    const from = random.next() * faultsForMs * 0.7;
    return { dependency: random.pick(dependencies), from, to: from + random.next() * faultsForMs };
  });
  const names = random.chance(0.5) ? random.pick(groups) : null;
  // An outage in the middle of a deploy is where gates meet versions.
  const oldDeploy = scenario.oldDeploy ?? oldDeployOf(scenario.seed + OLD_DEPLOY_SEEDS);
  return { ...scenario, oldDeploy, faultsForMs, jobs: random.whole(1, 60), names, outages };
}

/** Without enqueues that look at other jobs than the holder of their key: a checker that looks at one job at a time cannot follow them. */
export function withPlainEnqueues(scenario: Scenario): Scenario {
  const limits = scenario.limits.limits.map((one) => ({ ...one, onLimit: 'wait' as const }));
  return { ...scenario, throttled: 0, limits: { ...scenario.limits, limits } };
}
