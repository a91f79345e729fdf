import { systemClock } from '../../clock.ts';
import { type AnyJobDefinition, defineJob } from '../../definition.ts';
import { Unrecoverable } from '../../retry/control-errors.ts';
import type { DeadReason } from '../../retry/decision.ts';
import type { RetryOptions } from '../../retry/policy.ts';

/** Worked in a process of its own, which one of its jobs will kill. */
export const RISKY_QUEUE = 'risky';
export const SAFE_QUEUE = 'default';

/** The standard policy, with delays of at most 2 s, so that the demo ends soon. */
export const demoRetry: RetryOptions = {
  maxAttempts: 4,
  backoff: { kind: 'exponential', base: '400ms', factor: 2, max: '2s' },
  jitter: 'full',
};

/** A kind of job in the demo: what it does, how many there are, and how each of them has to end. */
export interface JobType {
  readonly definition: AnyJobDefinition;
  readonly does: string;
  readonly count: number;
  readonly ends: 'completed' | DeadReason;
}

interface Input {
  readonly number: number;
}

const welcome = defineJob<Input>({
  name: 'email.welcome',
  retry: demoRetry,
  run: ({ number }, { signal }) => pause(200 + 60 * (number % 5), signal),
});

const report = defineJob<Input>({
  name: 'report.build',
  retry: demoRetry,
  async run(_, { attempt, signal }) {
    await pause(80, signal);
    // An error of the job itself: while connections fail for all jobs of a name, attempts do not count.
    if (attempt <= 2) throw new Error('a part of the report is missing');
  },
});

const charge = defineJob<Input>({
  name: 'card.charge',
  retry: demoRetry,
  async run(_, { signal }) {
    await pause(50, signal);
    throw new Error('the ledger does not balance');
  },
});

const invoice = defineJob<Input>({
  name: 'invoice.import',
  retry: demoRetry,
  async run(_, { signal }) {
    await pause(50, signal);
    throw new Unrecoverable('the invoice has no number');
  },
});

const sms = defineJob<Input>({
  name: 'sms.send',
  retry: demoRetry,
  async run(_, { attempt, signal }) {
    await pause(40, signal);
    if (attempt > 1) return;
    throw Object.assign(new Error('Too Many Requests'), { status: 429, headers: { 'retry-after': '1' } });
  },
});

const video = defineJob<Input>({
  name: 'video.encode',
  retry: demoRetry,
  timeout: '300ms',
  run: (_, { attempt, signal }) => pause(attempt === 1 ? 60_000 : 100, signal),
});

const bystander = defineJob<Input>({
  name: 'image.resize',
  queue: RISKY_QUEUE,
  retry: demoRetry,
  run: (_, { signal }) => pause(400, signal),
});

const killer = defineJob<Input>({
  name: 'image.decode',
  queue: RISKY_QUEUE,
  retry: demoRetry,
  async run(_, { signal }) {
    // Long enough for the others to have started beside it.
    await pause(150, signal);
    process.kill(process.pid, 'SIGKILL');
    await pause(60_000, signal);
  },
});

export const jobTypes: readonly JobType[] = [
  { definition: welcome, does: 'succeeds', count: 16, ends: 'completed' },
  { definition: report, does: 'fails twice, then succeeds', count: 6, ends: 'completed' },
  { definition: sms, does: 'meets a rate limit: Retry-After 1 s', count: 4, ends: 'completed' },
  { definition: video, does: 'runs into its timeout once', count: 3, ends: 'completed' },
  { definition: charge, does: 'always fails', count: 3, ends: 'exhausted' },
  { definition: invoice, does: 'fails in a way no retry can help', count: 3, ends: 'unrecoverable' },
  { definition: killer, does: 'kills the process that runs it', count: 1, ends: 'poison' },
  { definition: bystander, does: 'runs beside the killer', count: 2, ends: 'completed' },
];

export const demoJobs: readonly AnyJobDefinition[] = jobTypes.map(({ definition }) => definition);

/** Throws early when the run's signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.after(ms, resolve);
    signal.addEventListener('abort', () => {
      timer.cancel();
      reject(signal.reason);
    });
  });
}
