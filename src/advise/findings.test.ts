import { describe, expect, it } from 'vitest';
import { type KnownError, type KnownProcess, knownError, makeLedger } from '../../test/support/known-process.ts';
import { defaultPolicy } from '../retry/resolve.ts';
import type { LedgerJob } from '../store/ledger.ts';
import { adviseName, type NameAdvice } from './advice.ts';
import { livesOf } from './lives.ts';

const OUTAGE_HOURS = 40 / 60;
const policy = { maxAttempts: 6 };

/** The advice on a ledger that several processes have written. */
function advise(processes: readonly KnownProcess[], changes: Partial<LedgerJob> = {}): NameAdvice {
  const jobs = processes.flatMap((process) => makeLedger({ policy, ...process }));
  const lives = jobs.flatMap((job) =>
    livesOf({ ...job, ...changes }, { ...defaultPolicy, ...policy, ...processes[0]?.policy }),
  );
  const errors = processes.flatMap((process) => process.errors.map(({ error }) => [error.fingerprint, error] as const));
  const sample = { factor: 1, parts: new Map(), spanMs: 86_400_000 };
  return adviseName('email.send', lives, Object.fromEntries(errors), sample);
}

const failing = (error: KnownError['error'], ...shares: number[]): KnownError => ({
  error,
  succeeds: (attempt) => shares[attempt - 2] ?? 0,
});
const refused = failing(knownError('RefusedError', { code: 'ECONNREFUSED' }));
/** All of these recover at attempt 2. */
const recovering: KnownProcess = { errors: [failing(knownError('BusyError'), 1)], jobs: 500 };
const outage = (error: KnownError = refused): KnownProcess => ({ errors: [error], jobs: 280, hours: OUTAGE_HOURS });
const bad = (jobs: number): KnownProcess => ({ errors: [failing(knownError('BadError'))], jobs });
const settings = ({ proposals }: NameAdvice): string[] => proposals.map(({ setting }) => setting);

describe('jobs that failed in an outage', () => {
  it('are no evidence for fewer attempts beside an error that never recovers', () => {
    const advice = advise([recovering, outage(), bad(150)]);
    expect(settings(advice)).toEqual(['resource']);
    expect(advice.tooFew).toContain(
      'attempts 3-6 never succeeded in 1d, tried by 150 jobs (280 more failed in an outage: they are no evidence, and are left out): too few to propose fewer attempts, 150 of 299 jobs needed.',
    );
  });

  it('are none where that error alone is enough for a class either', () => {
    expect(settings(advise([recovering, outage(), bad(400)]))).toEqual(['classification', 'resource']);
  });

  it('are none with an error of their own that is not of the environment either', () => {
    expect(settings(advise([recovering, outage(failing(knownError('MailError'))), bad(150)]))).toEqual([]);
  });

  it('are no evidence that early retries come too early', () => {
    const delayMs = (): number => 60_000;
    const late = (error: KnownError['error']): KnownError => failing(error, 0, 0, 1);
    const slow = (jobs: number): KnownProcess => ({ errors: [late(knownError('SlowError'))], jobs, delayMs });
    expect(settings(advise([slow(310)]))).toEqual(['backoff']);
    expect(settings(advise([slow(30), { ...outage(late(refused.error)), delayMs }]))).toEqual([]);
  });

  it('are left out of the figures where others are enough', () => {
    const half: KnownProcess = { errors: [failing(knownError('SlowError'), 0.5)], jobs: 1_000 };
    const alone = advise([half]).proposals[0];
    const beside = advise([half, outage()]).proposals[0];
    expect(alone).toMatchObject({ setting: 'maxAttempts', maxAttempts: 2 });
    expect(beside).toMatchObject({ setting: 'maxAttempts', maxAttempts: 2, runsSaved: alone?.runsSaved });
    expect(beside?.text).toContain('(280 more failed in an outage: they are no evidence, and are left out)');
  });
});

it('choices that lose jobs save no runs of an outage, nor of an error that is to be permanent', () => {
  const { choices } = advise([recovering, outage(), bad(400)]);
  expect(choices.map(({ runsSaved, jobsLost }) => [runsSaved, jobsLost])).toEqual([
    [500, 500],
    ...Array(4).fill([0, 0]),
  ]);
});

describe('a resource', () => {
  it('is proposed where jobs died in an outage behind no gate, however few other jobs there are', () => {
    const [proposal] = advise([outage()]).proposals;
    expect(proposal).toMatchObject({ setting: 'resource', jobsGained: 280 });
    expect(proposal?.text).toMatch(
      /^name a resource: 280 jobs died in the outage of 40m from 2026-01-01 00:00 UTC, because no gate kept their attempts\./,
    );
  });

  it('is not proposed to jobs that have one, nor for errors that no gate opens for', () => {
    expect(settings(advise([outage()], { resource: 'smtp' }))).toEqual([]);
    expect(settings(advise([outage(failing(knownError('MailError')))]))).toEqual([]);
  });
});

describe('too few jobs for a proposal', () => {
  it('are told with the tries of the last attempt that are needed', () => {
    const errors = [failing(knownError('BusyError'), 0.5, 0.5, 0.5)];
    const { proposals, tooFew } = advise([{ errors, jobs: 968, policy: { maxAttempts: 4 } }]);
    expect(proposals).toEqual([]);
    expect(tooFew).toEqual([
      expect.stringMatching(
        /^the last attempt still succeeded [45]\d % of the time, and 1\d\d jobs were exhausted: too few tries to propose more attempts, 2\d\d of 299 needed\.$/,
      ),
    ]);
  });

  it('are told with the jobs of an error that never recovers, and not for a handful of them', () => {
    expect(advise([recovering, bad(298)]).tooFew).toContain(
      'no job completed after BadError: BadError failed, though 298 were retried: too few to call it permanent, 298 of 299 jobs needed.',
    );
    expect(advise([recovering, bad(29)]).tooFew).toEqual([]);
  });

  it('are told with the hours, where all of them failed in few', () => {
    expect(advise([recovering, { ...bad(400), hours: 3 }]).tooFew).toContain(
      'no job completed after BadError: BadError failed, though 400 were retried: too few to call it permanent, they failed in 3 of 5 different hours needed.',
    );
  });
});
