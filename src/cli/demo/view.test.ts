import { expect, it } from 'vitest';
import { fakeOutput } from '../../../test/support/terminal.ts';
import type { Job, RunRecord } from '../../job.ts';
import { defaultPolicy } from '../../retry/resolve.ts';
import { jobTypes } from './jobs.ts';
import { makeView } from './view.ts';
import type { Snapshot } from './watch.ts';

const job = (name: string, state: Job['state']): Job =>
  ({ id: `${name} ${state}`, name, state, payload: { number: 1 }, policy: defaultPolicy }) as unknown as Job;

const jobs = [job('report.build', 'retrying'), job('report.build', 'completed'), job('card.charge', 'dead')];
const failed = {
  attempt: 1,
  outcome: 'failed',
  error: { name: 'Error', message: `\u001b[2J${'long '.repeat(40)}`, code: null, status: null, stack: null },
  decision: { kind: 'retry', why: 'backoff', delayMs: 500, lane: 'retry', rule: 'default' },
} as unknown as RunRecord;
const uneventful = { ...failed, outcome: 'completed', error: null, decision: { kind: 'complete', rule: 'completed' } };
const snapshot: Snapshot = {
  jobs,
  ended: [
    { job: jobs[0] as Job, record: failed },
    { job: jobs[1] as Job, record: uneventful as RunRecord },
  ],
  done: false,
};

it('prints one plain line per event where there is no terminal', () => {
  const { output, stdout } = fakeOutput();
  const view = makeView(output);
  view.show(snapshot);
  view.event('worker process 7 started');
  view.end();
  const lines = stdout.written.trimEnd().split('\n').slice(2);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(
    /^ *[\d.]+s {2}report\.build #1 {3}attempt 1 failed: Error: \\x1b\[2Jlong .*; again in 500ms$/,
  );
  expect(lines[1]).toMatch(/s {2}worker process 7 started$/);
  expect(stdout.written).not.toContain('\u001b');
});

it('redraws a sign per job in a terminal, and shows the cursor again', () => {
  const { output, stdout } = fakeOutput({ terminal: { columns: 80, rows: 40 } });
  const view = makeView(output);
  view.show(snapshot);
  view.show(snapshot);
  view.end();
  const frames = stdout.written.split('\u001b[J');
  expect(frames).toHaveLength(3);
  expect(stdout.written.startsWith('\u001b[?25l')).toBe(true);
  expect(stdout.written.endsWith('\u001b[?25h')).toBe(true);
  const lines = (frames[1] as string).split('\n');
  expect(
    lines.filter((line) => jobTypes.some(({ definition }) => line.includes(definition.name) && !line.includes('#'))),
  ).toHaveLength(jobTypes.length);
  expect(lines.find((line) => line.includes('fails twice'))).toMatch(/↻✔$/);
  expect(lines.find((line) => line.includes('always fails'))).toMatch(/✖$/);
  const event = lines.find((line) => line.includes('attempt 1 failed')) as string;
  expect(event).toContain('\\x1b[2J');
  expect(event.length).toBeLessThan(80);
});

it('prints plain lines in a terminal that is too small to draw in', () => {
  const { output, stdout } = fakeOutput({ terminal: { columns: 60, rows: 40 } });
  makeView(output).end();
  expect(stdout.written).not.toContain('\u001b');
});
