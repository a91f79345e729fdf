import { expect, it } from 'vitest';
import { fakeOutput } from '../../../../test/support/terminal.ts';
import type { Job } from '../../../job.ts';
import { unheardOf } from '../../../observe/gate-info.ts';
import type { SideFigures } from './side.ts';
import { summarise, summaryLines, unexpected } from './summary.ts';
import { makeOutageView, type Picture } from './view.ts';

const NOW = 1_000_000;
const job = (state: Job['state'], attempts: number, finishedAt: number | null = null): Job =>
  ({ state, attempts, finishedAt }) as unknown as Job;

const ungated: SideFigures = {
  jobs: [job('dead', 4, NOW - 1_000), job('completed', 2, NOW + 40), job('retrying', 1)],
  gate: null,
  ...{ callsPerSecond: [2, 4, 8, 1], callsWhileOff: 1_234 },
};
const shut = unheardOf({ kind: 'resource', name: 'service' }, null, NOW);
const gated: SideFigures = {
  jobs: [job('completed', 1, NOW - 5_000), job('completed', 1, NOW + 7_000), job('ready', 0)],
  gate: { ...shut, phase: 'open', waiting: 1 },
  ...{ callsPerSecond: [2, 0, 1, 0], callsWhileOff: 3 },
};
const picture: Picture = { elapsedMs: 3_200, offSinceMs: 1_000, offForMs: 4_000, isOn: false, ungated, gated };

it('prints a plain line every two seconds where there is no terminal', () => {
  const { output, stdout } = fakeOutput();
  const view = makeOutageView(output);
  for (const elapsedMs of [0, 500, 1_000, 2_000, 2_500]) view.show({ ...picture, elapsedMs });
  view.event('gated', 'gate service opened');
  view.end();
  const [groups, titles, ...lines] = stdout.written.trimEnd().split('\n');
  expect(lines).toEqual([
    '   0s  down      |       8        1          1      1      7 |       1        1          2      0      2      1  open    probes only',
    '   2s  down      |       8        1          1      1      7 |       1        1          2      0      2      1  open    probes only',
    '   3s  right: gate service opened',
  ]);
  expect(titles).toMatch(/^ time {2}service {3}\| calls\/s {2}waiting {2}completed {3}dead {2}tries \|/);
  const columnsOf = (line = ''): number[] => [...line.matchAll(/\|/g)].map(({ index }) => index);
  expect(columnsOf(groups)).toEqual(columnsOf(titles));
  expect(columnsOf(lines[0])).toEqual(columnsOf(titles));
  expect(stdout.written).not.toContain('\u001b');
});

it('redraws both sides and their curves in a terminal, on one scale', () => {
  const { output, stdout } = fakeOutput({ terminal: { columns: 80, rows: 40 } });
  const view = makeOutageView(output);
  view.show(picture);
  view.event('gated', `gate service opened: ${'long '.repeat(40)}`);
  view.end();
  const lines = (stdout.written.split('\u001b[J')[1] as string).split('\n');
  const line = (start: string): string | undefined => lines.find((one) => one.trim().startsWith(start))?.trim();
  expect(line('3s')).toBe('3s  the service is DOWN, back in 1.8s');
  expect(line('calls to the dead service')).toMatch(/ 1,234 +3$/);
  expect(line('held by the gate')).toMatch(/ - +1$/);
  expect(line('admission rate')).toMatch(/no limit +probes only$/);
  expect(line('calls/s, resource: false')).toMatch(/ ▂▄█$/);
  expect(line("calls/s, 'service'")).toMatch(/ ▂ ▁$/);
  expect(line('service (× is down)')).toMatch(/·××$/);
  expect(lines.every((one) => one.length <= 80)).toBe(true);
  expect(stdout.written.endsWith('\u001b[?25h')).toBe(true);
});

it('prints plain lines in a terminal that is too small to draw in', () => {
  const { output, stdout } = fakeOutput({ terminal: { columns: 70, rows: 40 } });
  makeOutageView(output).end();
  expect(stdout.written).not.toContain('\u001b');
});

it('sums up both sides from the return of the service on', () => {
  const summary = summarise(picture, 4_000, NOW);
  expect(summary.ungated).toMatchObject({
    jobs: 3,
    completed: 1,
    dead: 1,
    attempts: 7,
    calls: 15,
    callsWhileOff: 1_234,
  });
  expect(summary.ungated).toMatchObject({ firstSuccessAfterMs: 40, recoveryMs: 40 });
  expect(summary.gated).toMatchObject({ firstSuccessAfterMs: 7_000, recoveryMs: 7_000 });
  const text = summaryLines(summary, fakeOutput().output).join('\n');
  expect(text).toMatch(/^calls to the dead service +1,234 +3$/m);
  expect(text).toMatch(/^jobs dead +1 of 3 +0 of 3$/m);
  expect(text).toMatch(/^every job had ended +after 40ms +after 7s$/m);
});

it('says what did not go as planned', () => {
  const summary = summarise(picture, 4_000, NOW);
  expect(unexpected(summary)).toEqual(['2 of 3 jobs behind the gate completed']);
  const { gated: side } = summary;
  expect(unexpected({ ...summary, gated: { ...side, completed: 3 } })).toEqual([]);
  expect(unexpected({ ...summary, gated: { ...side, completed: 3, dead: 1 } })).toHaveLength(1);
  expect(unexpected({ ...summary, gated: { ...side, completed: 3, callsWhileOff: 1_234 } })).toHaveLength(1);
});
