import { checkInteger, checkList, checkName, checkOneOf, namesOf, readOptions, unexpected } from './config.ts';
import type { AnyJobDefinition, JobDefinition } from './definition.ts';
import type { EnqueueOptions } from './enqueue-options.ts';
import { LARGEST_MISFIRE_LIMIT, type MisfirePolicy, misfirePolicies } from './schedule/plan.ts';
import { readTiming, type Timing, type TimingOptions } from './schedule/timing.ts';

export const overlaps = ['allow', 'skip'] as const;
/** Whether a tick gets a job while the job of an earlier one is not finished. */
export type Overlap = (typeof overlaps)[number];

/** When a schedule ticks, and what its jobs are like. Give one of `cron`, `every` and `at`. */
export interface ScheduleOptions extends TimingOptions, Pick<EnqueueOptions, 'queue' | 'priority' | 'retry' | 'tags'> {
  /**
   * What becomes of ticks that no worker could fire within a minute: `skip` leaves them out, `once` (default) enqueues one
   * job for the last of them, `all` one for each.
   */
  readonly misfire?: MisfirePolicy;
  /** The most jobs that `misfire: 'all'` enqueues, for the last ticks. Default 100. */
  readonly misfireLimit?: number;
  /** `skip` enqueues no job while one of this schedule is live. Default `allow`. */
  readonly overlap?: Overlap;
}

/** A schedule in code: see `MulliganOptions.schedules`. */
export interface ScheduleDefinition extends ScheduleOptions {
  readonly name: string;
  readonly job: AnyJobDefinition | string;
  /** Default `{}`. */
  readonly input?: unknown;
}

/**
 * A schedule in code, with an input of the type that its job takes.
 * @example defineSchedule({ name: 'nightly', job: report, input: { kind: 'sales' }, cron: '0 3 * * *' })
 */
export function defineSchedule<Input>(
  schedule: Omit<ScheduleDefinition, 'job' | 'input'> & {
    readonly job: JobDefinition<Input, unknown> | string;
  } & (object extends NoInfer<Input> ? { readonly input?: NoInfer<Input> } : { readonly input: NoInfer<Input> }),
): ScheduleDefinition {
  return schedule;
}

export interface ReadSchedule {
  readonly name: string;
  readonly job: unknown;
  readonly input: unknown;
  readonly timing: Timing;
  readonly misfire: MisfirePolicy;
  readonly misfireLimit: number;
  readonly overlap: Overlap;
  readonly jobOptions: EnqueueOptions;
}

const DEFAULT_MISFIRE_LIMIT = 100;
/** So that the key of its jobs, which has it as a part, is no longer than a key may be. */
const LONGEST_NAME = 190;

const optionNames = namesOf<ScheduleOptions>({
  cron: true,
  timezone: true,
  every: true,
  anchor: true,
  at: true,
  misfire: true,
  misfireLimit: true,
  overlap: true,
  queue: true,
  priority: true,
  retry: true,
  tags: true,
});
const definitionNames = [...optionNames, 'name', 'job', 'input'] as const;

interface Given {
  readonly name: string;
  readonly job: unknown;
  readonly input: unknown;
  readonly options: ScheduleOptions;
}

export function readSchedule({ name, job, input, options }: Given, what: string): ReadSchedule {
  const { misfire, misfireLimit, overlap, queue, priority, retry, tags, ...timing } = readOptions(
    options,
    optionNames,
    what,
  );
  return {
    name,
    job,
    input,
    timing: readTiming(timing, what),
    misfire: checkOneOf(misfire ?? 'once', misfirePolicies, `${what}: misfire`),
    misfireLimit: checkMisfireLimit(misfireLimit ?? DEFAULT_MISFIRE_LIMIT, `${what}: misfireLimit`),
    overlap: checkOneOf(overlap ?? 'allow', overlaps, `${what}: overlap`),
    jobOptions: {
      ...(queue === undefined ? {} : { queue }),
      ...(priority === undefined ? {} : { priority }),
      ...(retry === undefined ? {} : { retry }),
      ...(tags === undefined ? {} : { tags }),
    },
  };
}

/** The schedules of an application. All that can be known without a store is checked before one is opened. */
export function readSchedules(schedules: unknown, what: string): ReadSchedule[] {
  const read = checkList(schedules, what, 'a list of schedules', (one, index) => {
    const place = `${what}[${index}]`;
    const { name, job, input = {}, ...options } = readOptions(one as ScheduleDefinition, definitionNames, place);
    return readSchedule({ name: checkScheduleName(name, `${place}: name`), job, input, options }, place);
  });
  const names = read.map(({ name }) => name);
  const doubled = names.find((name, index) => names.indexOf(name) !== index);
  if (doubled !== undefined) throw unexpected(what, 'each name once', doubled);
  return read;
}

export function checkMisfireLimit(value: unknown, what: string): number {
  return checkInteger(value, what, { min: 1, max: LARGEST_MISFIRE_LIMIT });
}

export function checkScheduleName(value: unknown, what: string): string {
  const name = checkName(value, what);
  if (name.length <= LONGEST_NAME) return name;
  throw unexpected(what, `a name of at most ${LONGEST_NAME} characters`, value);
}
