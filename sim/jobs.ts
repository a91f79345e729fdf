import { z } from 'zod';
import type { Clock } from '../src/clock.ts';
import { type AnyJobDefinition, defineJob, type JobContext } from '../src/definition.ts';
import { Cancel, RetryAfter, Unrecoverable } from '../src/retry/control-errors.ts';
import type { RetryOptions } from '../src/retry/policy.ts';
import type { InputSchema } from '../src/schema.ts';
import { dependencyOf } from './checker/gates.ts';
import type { History } from './history.ts';
import { limitOptionsOf } from './limits.ts';
import type { Random } from './random.ts';
import type { Scenario } from './scenario.ts';
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

/** Failures that are blamed on the dependency, though it is up. */
export const environmentKinds: ReadonlySet<ScriptKind> = new Set<ScriptKind>([
  'retry-after',
  'time-out',
  'ignore-signal',
]);

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

type SimResource = string | false | ((script: Script) => [string, string]);

/** What some of them depend on: operators hold these now and then, and they go down. The others share the network. */
export const simResources: Readonly<Record<string, SimResource>> = {
  short: 'mail',
  wandering: 'mail',
  fragile: 'mail',
  bounded: 'payments',
  spread: ({ times }) => ['hook', String(times)],
  once: false,
};
export const simGates: readonly string[] = ['mail', 'payments', 'hook/1', 'hook/2', 'hook/3'];
export const dependencies: readonly string[] = ['mail', 'payments', 'hook', 'network'];

function resourceOf(name: string, script: Script): string | null {
  const resource = simResources[name];
  if (typeof resource === 'function') return resource(script).join('/');
  return typeof resource === 'string' ? resource : null;
}

/** Whether a dependency is down now. */
export type IsDown = (dependency: string) => boolean;

/** Accepts nothing. */
const rejecting = z.never() as unknown as InputSchema<Script>;

/** One definition per policy; all run scripts. A worker of the deploy before cannot run all of them. */
export function simJobs(
  process: SimProcess,
  history: History,
  isDown: IsDown,
  { oldDeploy, limits, isOld }: Pick<Scenario, 'oldDeploy' | 'limits'> & { readonly isOld: boolean },
): AnyJobDefinition[] {
  const names = Object.entries(simPolicies).filter(([name]) => !isOld || oldDeploy?.[name] !== 'absent');
  return names.map(([name, retry]) =>
    defineJob<Script>({
      name,
      retry,
      timeout: 20_000,
      ...(oldDeploy?.[name] === 'older' ? { version: isOld ? 1 : 2 } : {}),
      ...(isOld && oldDeploy?.[name] === 'rejects' ? { input: rejecting } : {}),
      ...(name === 'spread' ? { retryQueue: 'second' } : {}),
      ...(simResources[name] === undefined ? {} : { resource: simResources[name] }),
      limit: limitOptionsOf(limits, name),
      async run(script, context) {
        history.add({
          at: now(process),
          kind: 'handler',
          process: process.name,
          job: context.job.id,
          run: context.run,
          attempt: context.attempt,
        });
        if (isDown(dependencyOf(resourceOf(name, script)))) await refuse(context, process.clock);
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

async function refuse(context: JobContext, clock: Clock): Promise<never> {
  await work(5, context, clock);
  throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
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
  const script = { kind, ms: random.pick([0, 0, 1, 20, 300, 4_000]), times: random.pick([1, 1, 2, 3, 99]) };
  // Where such failures are the rule, there is an outage without an end, and a job waits for its end.
  return environmentKinds.has(kind) ? { ...script, times: Math.min(3, script.times) } : script;
}
