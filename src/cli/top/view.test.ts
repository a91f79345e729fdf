import { describe, expect, it } from 'vitest';
import { fakeOutput } from '../../../test/support/terminal.ts';
import type { LimitSummary } from '../../limits.ts';
import { unheardOf } from '../../observe/gate-info.ts';
import { widthOf } from '../../printable.ts';
import type { ErrorGroup, RegisteredWorker } from '../../store/store.ts';
import type { TopQueue, TopSnapshot } from './snapshot.ts';
import { headingOf, topLines } from './view.ts';

const AT = 1_700_000_000_000;

const queue: TopQueue = {
  queue: 'emails',
  paused: false,
  ready: 3,
  scheduled: 77,
  retrying: 2,
  running: 1,
  dead: 0,
  completedPerSecond: 12.34,
  failedPerSecond: 0,
};

const worker = {
  id: 'web-1-4711',
  state: 'alive',
  running: 3,
  concurrency: 10,
  queues: ['emails'],
  version: '1.4.2',
  lastSeenAt: AT,
};
const error = { name: 'Error', message: `refused \u001b[2J ${'again '.repeat(60)}`, code: null, status: 503 };
const group = {
  fingerprint: 'e1774acb6ded27',
  failing: 1_234_567,
  dead: 98_765_432,
  lastSeenAt: AT - 61_000,
  names: [{ name: 'email.send' }, { name: 'email.digest' }],
  sample: { jobId: '1', error },
};

const full: TopSnapshot = {
  at: AT,
  queues: [
    queue,
    {
      ...queue,
      queue: `\u001b]0;title\u0007${'long-'.repeat(30)}`,
      paused: true,
      ready: 1_234_567,
      retrying: 123_456,
      dead: 99_999_999,
      completedPerSecond: 123_456.7,
      failedPerSecond: 0.04,
    },
  ],
  gates: [
    { ...unheardOf({ kind: 'resource', name: `smtp/${'x'.repeat(200)}` }, null, AT), phase: 'open', pin: 'open' },
  ],
  limits: [
    { name: 'shopify', running: 5, waiting: 70_000, settings: { total: 5, rate: null } } as unknown as LimitSummary,
  ],
  errors: [group as unknown as ErrorGroup],
  workers: [{ ...worker, state: 'lost', lastSeenAt: AT - 120_000 }, worker] as unknown as RegisteredWorker[],
};

const empty: TopSnapshot = { at: AT, queues: [], gates: [], limits: [], errors: [], workers: [] };

function linesAt(columns: number, rows: number, snapshot: TopSnapshot = full): string[] {
  const { output } = fakeOutput({ terminal: { columns, rows } });
  return topLines(snapshot, headingOf('sqlite:jobs.db', snapshot, { keys: 'q quits', failure: null }), output);
}

const titles = ['Queues', 'Gates', 'Limits with waiting jobs', 'Latest failures', 'Workers'];

describe('topLines', () => {
  it.each([80, 140])(
    'fits %i columns, with names and numbers of any size, and prints no control character',
    (columns) => {
      const lines = linesAt(columns, 60);
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
      expect(lines.join('')).not.toMatch(/\p{Cc}/u);
      for (const title of titles) expect(lines.some((line) => line.startsWith(title))).toBe(true);
    },
  );

  it('shows the busiest queue first, with its rates', () => {
    const lines = linesAt(80, 60);
    const at = lines.findIndex((line) => line.startsWith('queue '));
    expect(lines[at]).toMatch(/^queue +state +ready +retrying +running +dead +done\/s +failed\/s$/);
    expect(lines[at + 1]).toMatch(/^\\x1b\]0;.*… +paused +1234k +123k +1 +99M +123k +0\.0$/);
    expect(lines[at + 2]).toMatch(/^emails +- +3 +2 +1 +0 +12\.3 +0$/);
  });

  it('adds what can be done without in a wide terminal', () => {
    const [narrow, wide] = [linesAt(80, 60).join('\n'), linesAt(140, 60).join('\n')];
    for (const column of ['scheduled', 'since', 'rate of each key', 'version', 'email.send and 1 more']) {
      expect(narrow).not.toContain(column);
      expect(wide).toContain(column);
    }
  });

  it('says states in words, not by colour alone', () => {
    const text = linesAt(140, 60).join('\n');
    expect(text).toMatch(/ paused /);
    expect(text).toMatch(/ open, pinned /);
    expect(text).toMatch(/ lost +1\.4\.2 /);
    expect(text).toMatch(/ alive +1\.4\.2 /);
  });

  it('fits a low terminal: the longest section gives way first, and says how much of it is shown', () => {
    const queues = Array.from({ length: 40 }, (_, at) => ({ ...queue, queue: `queue-${at}`, ready: at }));
    const lines = linesAt(80, 30, { ...full, queues });
    expect(lines).toHaveLength(30);
    expect(lines.some((line) => /^Queues \(\d+ of 40\)$/.test(line))).toBe(true);
    expect(lines.some((line) => line.startsWith('queue-39 '))).toBe(true);
    expect(lines.at(-1)).toMatch(/^web-1-4711 /);
    expect(linesAt(80, 5)).toHaveLength(5);
    // Of two that are equally long, the one that is further down.
    const two = linesAt(80, 24, { ...full, gates: [...full.gates, ...full.gates] });
    expect(two).toContain('Queues');
    expect(two).toContain('Workers (1 of 2)');
  });

  it('says of each section that is empty what that means', () => {
    expect(linesAt(80, 24, empty)).toEqual([
      'mulligan top  q quits  2023-11-14T22:13:20.000Z  sqlite:jobs.db',
      '0 waiting, 0 running, 0 dead; 0 of 0 workers alive',
      '',
      'Queues: none yet',
      '',
      'Gates: all closed',
      '',
      'Limits with waiting jobs: none',
      '',
      'Latest failures: none within an hour',
      '',
      'Workers: none has registered',
    ]);
  });
});
