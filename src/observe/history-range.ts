import { type Moment, readMoment } from '../bulk/selection.ts';
import { unexpected } from '../config.ts';
import { type Duration, formatDuration, parseDuration } from '../duration.ts';
import { type historySteps, startOf } from '../store/history.ts';

/** Steps that are chosen by themselves; the smallest that gives no more than `goodPoints`. */
const GOOD_STEPS: readonly number[] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map(
  (minutes) => minutes * 60_000,
);

export interface RangeOptions {
  readonly from: Moment;
  readonly to?: Moment;
  readonly step?: Duration;
}

/** What a history can tell. */
export interface RangeBounds {
  /** The option of the messages. */
  readonly what: string;
  readonly steps: typeof historySteps;
  /** The smaller of the steps, in words. */
  readonly wholeUnits: string;
  readonly goodPoints: number;
  readonly mostPoints: number;
}

/** From the start of a step, to the start of another. */
export interface Range {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
}

export function readRange(options: RangeOptions, now: number, bounds: RangeBounds): Range {
  const { what } = bounds;
  const from = readMoment(options.from, `${what}: from`, now);
  const to = options.to === undefined ? now : readMoment(options.to, `${what}: to`, now);
  if (from >= to) throw unexpected(`${what}: from`, 'a time before `to`', new Date(from).toISOString());
  const stepMs =
    options.step === undefined ? goodStep(from, to, now, bounds) : readStep(options.step, from, to, now, bounds);
  return { from: startOf(from, stepMs), to: startOf(to - 1, stepMs) + stepMs, stepMs };
}

/** The start of every step. */
export function stepsOf({ from, to, stepMs }: Range): number[] {
  return Array.from({ length: (to - from) / stepMs }, (_, index) => from + index * stepMs);
}

function goodStep(from: number, to: number, now: number, bounds: RangeBounds): number {
  const unit = unitOf(from, now, bounds);
  const fits = (stepMs: number): boolean => (to - from) / stepMs <= bounds.goodPoints && stepMs % unit === 0;
  const largest = GOOD_STEPS.at(-1) as number;
  return GOOD_STEPS.find(fits) ?? largest * Math.ceil((to - from) / largest / bounds.goodPoints);
}

/** A range of exactly two days, asked for by its length, still has the smaller steps: the first one may be missing. */
function unitOf(from: number, now: number, { steps: [fine, hours] }: RangeBounds): number {
  return from >= now - fine.keptMs - fine.stepMs ? fine.stepMs : hours.stepMs;
}

function readStep(step: Duration, from: number, to: number, now: number, bounds: RangeBounds): number {
  const what = `${bounds.what}: step`;
  const stepMs = parseDuration(step, what);
  const unit = unitOf(from, now, bounds);
  if (stepMs < unit || stepMs % unit !== 0) {
    const isFine = unit === bounds.steps[0].stepMs;
    const whole = isFine ? bounds.wholeUnits : 'whole hours, for a range that begins more than 2 days ago';
    throw unexpected(what, whole, step);
  }
  if (Math.ceil((to - from) / stepMs) > bounds.mostPoints) {
    const least = Math.ceil((to - from) / bounds.mostPoints / unit) * unit;
    throw unexpected(
      what,
      `${bounds.mostPoints} steps at most, so at least ${formatDuration(least)} for this range`,
      step,
    );
  }
  return stepMs;
}
