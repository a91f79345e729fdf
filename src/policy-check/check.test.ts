import { describe, expect, it } from 'vitest';
import { type AnyJobDefinition, defineJob, type JobOptions } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import type { LogEntry } from '../observe/log.ts';
import { policies } from '../retry/presets.ts';
import { resolvePolicy } from '../retry/resolve.ts';
import { type CheckedSettings, checkPolicy } from './check.ts';
import type { WarningName } from './names.ts';

type Options = Partial<JobOptions<unknown>>;
const define = (options: Options): AnyJobDefinition =>
  defineJob({ name: 'a', run: async () => {}, ...options } as JobOptions<unknown> & { readonly output?: never });

function namesOf(options: Options, worker: Partial<CheckedSettings> = {}): WarningName[] {
  return warningsOf(options, worker).map(({ name }) => name);
}

function warningsOf(options: Options, worker: Partial<CheckedSettings> = {}): ReturnType<typeof checkPolicy> {
  const job = define(options);
  const { policy } = resolvePolicy({ definition: job.retry });
  return checkPolicy({ policy, job, leaseMs: 30_000, places: 10, ...worker }, job.silence);
}

describe('settings that get no warning', () => {
  it.each(Object.entries(policies))('the preset %s with the defaults of a worker', (_, retry) => {
    expect(namesOf({ retry })).toEqual([]);
  });

  it('a timeout that is longer than the lease, of an async handler: its lease is renewed', () => {
    expect(namesOf({ timeout: '5m' })).toEqual([]);
  });

  it('a short window behind a gate, also a soft one', () => {
    expect(namesOf({ retry: policies.lowLatency, resource: 'smtp' })).toEqual([]);
    expect(namesOf({ retry: policies.lowLatency })).toEqual([]);
  });

  it('no jitter where a limit lets few jobs run at once', () => {
    const limit = { name: 'l', concurrency: 5 };
    expect(namesOf({ retry: policies.sweep, limit }, { places: 100 })).toEqual([]);
    const keyed = { ...limit, key: () => 'k' };
    expect(namesOf({ retry: policies.sweep, limit: keyed }, { places: 100 })).toEqual(['no-jitter']);
  });

  it('a job that is never retried', () => {
    expect(namesOf({ retry: { maxAttempts: 1, jitter: 'none' }, resource: false }, { places: 100 })).toEqual([]);
  });

  it('one that has a backoff function of its own, whose waits are not known', () => {
    const backoff = (): number => 3_600_000;
    const retry = { maxAttempts: 4, deadline: '1s', jitter: 'none' } as const;
    expect(namesOf({ resource: false, retry, backoff }, { places: 100 })).toEqual([]);
  });
});

const inTime = { maxAttempts: 3, backoff: { kind: 'fixed', base: '10s' }, jitter: 'none' } as const;

it.each<[WarningName, Options, Partial<CheckedSettings>, string]>([
  ['short-window', { resource: false }, {}, '4 attempts are used up 1.8s after the first on average'],
  ['no-jitter', { retry: policies.requeue }, { places: 50 }, 'up to 50 at the same moment'],
  ['timeout-beyond-lease', { timeout: '1m', run: () => {} }, {}, 'timeout of 1m is longer than the lease of 30s'],
  [
    'timeout-beyond-deadline',
    { timeout: '2m', retry: { deadline: '2m' } },
    {},
    'its timeout of 2m reaches its deadline of 2m',
  ],
  ['attempts-beyond-deadline', { retry: { ...inTime, deadline: '15s' } }, {}, 'about 2 of them are made'],
  [
    'concurrency-above-total',
    { limit: { name: 'l', key: () => 'k', concurrency: 5, total: 3 } },
    {},
    'limit l: one key may run 5 jobs at once, but all keys together only 3',
  ],
  [
    'rate-beyond-deadline',
    { limit: { name: 'l', rate: { limit: 1, per: '1h' } }, retry: { deadline: '10m' } },
    {},
    'limit l: a key starts one job in 1h',
  ],
])('%s is found, said with its figures, and silenced by name', (name, options, worker, problem) => {
  const [warning, ...others] = warningsOf(options, worker);
  expect(others).toEqual([]);
  expect(warning).toMatchObject({ name, problem: expect.stringContaining(problem) });
  expect(warning?.advice).toMatch(/^[A-Z].*\.$/);
  expect(namesOf({ ...options, silence: [name] }, worker)).toEqual([]);
});

describe('the edges', () => {
  it('waits that just fit the deadline, and 20 jobs at once, are no reason to warn', () => {
    expect(namesOf({ retry: { ...inTime, deadline: '20s' } }, { places: 20 })).toEqual([]);
    expect(namesOf({ retry: { ...inTime, deadline: '20s' } }, { places: 21 })).toEqual(['no-jitter']);
    expect(namesOf({ retry: { ...inTime, deadline: 19_999 } })).toEqual(['attempts-beyond-deadline']);
  });

  it('a rate with a burst lets a retry start in time', () => {
    const rate = { limit: 10, per: '1h', burst: 2 } as const;
    expect(namesOf({ limit: { name: 'l', rate }, retry: { deadline: '5m' } })).toEqual([]);
  });

  it('a window as long as the longest pause of a gate between two probes is long enough', () => {
    const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: '20s' }, jitter: 'none' } as const;
    expect(namesOf({ resource: false, retry })).toEqual([]);
    const shorter = { ...retry, backoff: { kind: 'fixed', base: 19_999 } } as const;
    expect(namesOf({ resource: false, retry: shorter })).toEqual(['short-window']);
  });
});

describe('the start of a worker', () => {
  async function logged(options: Parameters<typeof Mulligan.open>[1]): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    await using mulligan = await Mulligan.open('memory:', { ...options, log: (entry) => entries.push(entry) });
    mulligan.work();
    mulligan.work();
    return entries;
  }

  it('logs each warning of a job once, however many workers start', async () => {
    const entries = await logged({ jobs: [define({ resource: false }), define({ name: 'b' })] });
    expect(entries).toMatchObject([{ level: 'warn', job: 'a', warning: 'short-window' }]);
    expect(entries[0]?.message).toMatch(/^job a: its 4 attempts .* Name the resource/);
  });

  it('logs none that the options silence, and checks the names', async () => {
    expect(await logged({ jobs: [define({ resource: false })], silence: ['short-window'] })).toEqual([]);
    await expect(logged({ silence: ['short-windows' as never] })).rejects.toThrow('Did you mean short-window?');
    expect(() => define({ silence: 'no-jitter' as never })).toThrow('expected a list of names of warnings');
  });

  it('checks the policy that the jobs of a queue get', async () => {
    const retry = { deadline: '1s' } as const;
    const entries = await logged({ jobs: [define({})], queues: { default: { retry } } });
    expect(entries).toMatchObject([{ warning: 'attempts-beyond-deadline' }]);
  });
});
