/*
 * How sure a share is. All bounds are for 95 of 100 cases.
 */

/** The two-sided bound of a normal distribution for 95 of 100. */
const Z = 1.96;
/** A share of nothing at all is at most this, for sure enough, after `NEEDED` tries. */
const RARE = 0.01;
/** So many tries without a success show that fewer than 1 in 100 succeed: 0.99 to this power is below 0.05. */
export const NEEDED: number = Math.ceil(Math.log(0.05) / Math.log(1 - RARE));
/** They must have begun in so many different hours: jobs that failed in one outage are one case, however many they are. */
export const NEEDED_HOURS = 5;

export interface Share {
  readonly tried: number;
  readonly succeeded: number;
  readonly share: number;
  /** Where the share of all jobs lies, when these are a sample. */
  readonly low: number;
  readonly high: number;
}

/** Wilson's interval, for as many independent tries as the sample is worth. */
export function shareOf(succeeded: number, tried: number, designEffect = 1): Share {
  if (tried === 0) return { tried, succeeded, share: 0, low: 0, high: 1 };
  const share = succeeded / tried;
  const worth = tried / Math.max(1, designEffect);
  const middle = (share + Z ** 2 / (2 * worth)) / (1 + Z ** 2 / worth);
  const half = (Z / (1 + Z ** 2 / worth)) * Math.sqrt((share * (1 - share)) / worth + Z ** 2 / (4 * worth ** 2));
  // With no success, or nothing else, the interval ends there; rounding would leave it a little beside.
  const low = succeeded === 0 ? 0 : Math.max(0, middle - half);
  return { tried, succeeded, share, low, high: succeeded === tried ? 1 : Math.min(1, middle + half) };
}

/**
 * By how much jobs that were drawn together are alike: 1 when they are as different as any. Jobs on one page of a table ended
 * at about the same time, and may have met the same outage.
 */
export function designEffect(parts: Iterable<{ readonly tried: number; readonly succeeded: number }>): number {
  const all = [...parts];
  const tried = all.reduce((sum, part) => sum + part.tried, 0);
  const succeeded = all.reduce((sum, part) => sum + part.succeeded, 0);
  const share = succeeded / tried;
  if (all.length < 2 || share === 0 || share === 1 || tried === 0) return 1;
  const squares = all.reduce((sum, part) => sum + (part.succeeded - share * part.tried) ** 2, 0);
  const ofParts = ((all.length / (all.length - 1)) * squares) / tried ** 2;
  return Math.max(1, ofParts / ((share * (1 - share)) / tried));
}

/** What was read of one part that was drawn. */
export interface PartTotal {
  readonly jobs: number;
  /** What is added up over the parts. */
  readonly amount: number;
}

/**
 * The bound of a total that is estimated from a sample: `factor` times what its parts add up to, give or take this. A part
 * with more jobs may have more of everything, so only what it has beyond its jobs' share counts as chance.
 */
export function totalBound(parts: readonly PartTotal[], factor: number): number {
  if (parts.length < 2 || factor <= 1) return 0;
  const jobs = parts.reduce((sum, part) => sum + part.jobs, 0);
  const perJob = parts.reduce((sum, { amount }) => sum + amount, 0) / Math.max(1, jobs);
  const squares = parts.reduce((sum, part) => sum + (part.amount - perJob * part.jobs) ** 2, 0);
  const drawn = 1 / factor;
  return Z * factor * Math.sqrt((1 - drawn) * (parts.length / (parts.length - 1)) * squares);
}
