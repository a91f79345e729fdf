import type { Clock } from '../src/clock.ts';
import { type AnyJobDefinition, defineJob } from '../src/definition.ts';
import { Cancel, RetryAfter, Unrecoverable } from '../src/retry/control-errors.ts';
import type { RetryOptions } from '../src/retry/policy.ts';
import type { JobContext } from '../src/worker/context.ts';
import type { History } from './history.ts';
import type { Random } from './random.ts';
import { type SimProcess, START } from './scheduler.ts';

/** What a simulated handler does; travels as the payload, so that every run of a job knows it. */
export interface Script {
  readonly kind: ScriptKind;
  /** How long it works, in virtual ms. */
  readonly ms: number;
  /** Fails (or snoozes, or kills) on runs up to this one. */
  readonly times: number;
}

export const scriptKinds = [
  'complete',
  'fail',
  'unrecoverable',
  'retry-after',
  'snooze',
  'cancel-itself',
  'time-out',
  'ignore-signal',
  'throw-nonsense',
  'once',
  'extend',
  'kill',
] as const;
export type ScriptKind = (typeof scriptKinds)[number];

export const RETRY_AFTER_MS = 7_000;
export const SNOOZE_MS = 3_000;
export const DEADLINE_MS = 120_000;

export const simPolicies: Readonly<Record<string, RetryOptions>> = {
  short: { maxAttempts: 3, backoff: { kind: 'exponential', base: 200, max: 2_000 }, jitter: 'full' },
  steady: { maxAttempts: 5, backoff: { kind: 'fixed', base: 500 }, jitter: 'none' },
  spread: { maxAttempts: 6, backoff: { kind: 'linear', base: 300, max: 1_000 }, jitter: { spread: 0.3 } },
  wandering: { maxAttempts: 8, backoff: { kind: 'fibonacci', base: 100, max: 3_000 }, jitter: 'decorrelated' },
  once: { maxAttempts: 1 },
  bounded: {
    maxAttempts: 50,
    backoff: { kind: 'table', delays: [100, 1_000, 4_000] },
    jitter: 'equal',
    deadline: DEADLINE_MS,
  },
  fragile: { maxAttempts: 20, backoff: { kind: 'fixed', base: 100 }, jitter: 'none', maxCrashes: 2 },
};

/** What some of them depend on: operators hold these now and then. */
export const simResources: Readonly<Record<string, string>> = { short: 'mail', wandering: 'mail', bounded: 'payments' };

/** One definition per policy; all run scripts. */
export function simJobs(process: SimProcess, history: History): AnyJobDefinition[] {
  return Object.entries(simPolicies).map(([name, retry]) =>
    defineJob<Script>({
      name,
      retry,
      timeout: 20_000,
      ...(name === 'spread' ? { retryQueue: 'second' } : {}),
      ...(simResources[name] === undefined ? {} : { resource: simResources[name] }),
      async run(script, context) {
        history.add({
          at: now(process),
          kind: 'handler',
          process: process.name,
          job: context.job.id,
          run: context.run,
        });
        await perform(script, context, process, history);
      },
    }),
  );
}

async function perform(script: Script, context: JobContext, process: SimProcess, history: History): Promise<void> {
  const { kind, ms, times } = script;
  const failing = context.run <= times;
  switch (kind) {
    case 'complete':
      return work(ms, context, process.clock);
    case 'time-out':
      return work(failing ? 60_000 : ms, context, process.clock);
    case 'ignore-signal':
      return sleep(failing ? 60_000 : ms, process.clock);
    case 'extend':
      await context.extend(30_000);
      return sleep(ms, process.clock);
    case 'once':
      await context.once('effect', () => {
        history.add({ at: now(process), kind: 'effect', job: context.job.id, run: context.run, key: 'effect' });
        return { run: context.run };
      });
      await work(ms, context, process.clock);
      if (failing) throw new Error('after the effect');
      return;
    default:
      await work(ms, context, process.clock);
      if (failing) misbehave(kind, context, process, history);
  }
}

function misbehave(kind: ScriptKind, context: JobContext, process: SimProcess, history: History): void {
  switch (kind) {
    case 'fail':
      throw new Error('no');
    case 'unrecoverable':
      throw new Unrecoverable();
    case 'retry-after':
      throw new RetryAfter(RETRY_AFTER_MS);
    case 'snooze':
      context.snooze(SNOOZE_MS);
      break;
    case 'cancel-itself':
      throw new Cancel();
    case 'throw-nonsense':
      throw undefined;
    case 'kill':
      process.kill();
      history.add({ at: now(process), kind: 'down', process: process.name });
  }
}

function now(process: SimProcess): number {
  return process.clock.now() - process.skewMs - START;
}

function sleep(ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

async function work(ms: number, { signal }: JobContext, clock: Clock): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    clock.after(ms, resolve);
  });
}

/** A script by chance; most jobs are well behaved, and killers are rare. */
export function randomScript(random: Random): Script {
  const kind = random.chance(0.4) ? 'complete' : random.chance(0.12) ? 'kill' : random.pick(scriptKinds);
  return { kind, ms: random.pick([0, 0, 1, 20, 300, 4_000]), times: random.pick([1, 1, 2, 3, 99]) };
}
