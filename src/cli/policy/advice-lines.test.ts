import { expect, it } from 'vitest';
import { fakeOutput } from '../../../test/support/terminal.ts';
import type { Advice, NameAdvice, Proposal } from '../../advise/index.ts';
import { adviceLines } from './advice-lines.ts';

const HOUR_MS = 3_600_000;

/** The lines of one name, of a ledger whose first job ended 7 hours ago. */
function linesOf(changes: Partial<NameAdvice>, ledger: Partial<Advice> = {}): string {
  const name = { name: 'a', jobs: 1, failed: 1, retries: { runs: 1, runMs: 5, recovered: 1 }, tooSmall: null };
  const empty = { attempts: [], groups: [], proposals: [], choices: [], tooFew: [], policy: { maxAttempts: 4 } };
  const advice = { now: 720 * HOUR_MS, since: 0, isPruned: false, oldestAt: 713 * HOUR_MS, read: 1, jobs: 1 };
  const names = [{ ...name, ...empty, ...changes }];
  return adviceLines({ ...advice, isSampled: false, ...ledger, names } as unknown as Advice, fakeOutput().output).join(
    '\n',
  );
}

const proposal = (text: string, changes: Partial<Proposal> = {}): Proposal =>
  ({ setting: 'maxAttempts', maxAttempts: 2, runsSaved: 10, text, ...changes }) as Proposal;

it('one is one job, and one run', () => {
  expect(linesOf({ tooSmall: 'one hour.' })).toMatch(
    /: 1 ended job, all .*a: 1 job, of which 1 failed .* took 1 run and .*, and 1 job recovered\./s,
  );
});

it('a ledger that is younger than the time asked for says how old it is', () => {
  expect(linesOf({})).toContain('The last 30d (the first of these jobs ended 7h ago): 1 ended job, all of them read.');
  expect(linesOf({}, { oldestAt: 2 * HOUR_MS })).toContain('The last 30d: 1 ended job');
});

it('what too few jobs suggest is told instead of "nothing to change"', () => {
  const told = linesOf({ tooFew: ['too few tries.'] });
  expect(told).toContain('Nothing is proposed.\nToo few jobs to propose it\n  - too few tries.');
  expect(told).not.toContain('Nothing to change');
  expect(linesOf({})).toContain('Nothing to change');
});

it('savings of two proposals are not to be added up', () => {
  const warning = 'Savings may be of the same runs: do not add them up.';
  expect(linesOf({ proposals: [proposal('one.'), proposal('two.')] })).toContain(warning);
  expect(linesOf({ proposals: [proposal('one.'), proposal('gate.', { runsSaved: 0 })] })).not.toContain(warning);
});

it('a proposal that its replay speaks against is marked, and one stands beside a ledger that is too small', () => {
  expect(linesOf({ proposals: [proposal('fewer.', { withdrawn: '5 died' })] })).toContain(
    'Proposals\n  - Withdrawn (5 died): fewer.',
  );
  expect(linesOf({ tooSmall: 'one hour.', proposals: [proposal('a gate.')] })).toContain(
    'Too small a ledger: one hour.\nProposals\n  - a gate.',
  );
});

it('a choice that would lose jobs and save no run is not offered', () => {
  const choice = (runsSaved: number): string =>
    linesOf({ failed: 1_000, choices: [{ maxAttempts: 2, runsSaved, jobsLost: 5 }] });
  expect(choice(20)).toContain('If a few jobs may be lost: maxAttempts 2 would have saved 20 runs and lost 5 jobs');
  expect(choice(0)).not.toContain('If a few jobs');
});
