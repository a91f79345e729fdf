import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { type FakeStream, fakeOutput } from '../../../test/support/terminal.ts';
import { type Clock, systemClock } from '../../clock.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { type Keys, watch } from './loop.ts';
import type { TopSnapshot } from './snapshot.ts';

const ENTERED = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEFT = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const snapshot: TopSnapshot = { at: 0, queues: [], gates: [], limits: [], errors: [], workers: [] };

class FakeKeys extends EventEmitter {
  readonly isTTY = true;
  readonly modes: boolean[] = [];
  setRawMode(isRaw: boolean): this {
    this.modes.push(isRaw);
    return this;
  }
  pause = (): this => this;
  resume = (): this => this;
}

interface Pace {
  readonly clock?: Clock;
  readonly intervalMs?: number;
}

/** A loop in a terminal of its own; `read` gets the number of the reading. */
function start(read: (count: number) => Promise<TopSnapshot>, { clock = systemClock, intervalMs = 1 }: Pace = {}) {
  const { output, stdout } = fakeOutput({ terminal: { columns: 80, rows: 24 } });
  const keys = new FakeKeys();
  let reads = 0;
  const ended = watch({
    reader: { read: () => read(++reads) },
    output,
    clock,
    keys: keys as unknown as Keys,
    intervalMs,
    database: 'sqlite:jobs.db',
  });
  return { stdout, keys, ended, reads: () => reads };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise<void>((resolve) => void systemClock.after(1, resolve));
}

const drawn = ({ written }: FakeStream): number => written.split('mulligan top').length - 1;

const refreshes = (): Promise<TopSnapshot> => Promise.resolve(snapshot);

it('redraws until q is pressed, and gives the screen and the keys back', async () => {
  const { stdout, keys, ended } = start(refreshes);
  await until(() => drawn(stdout) >= 3);
  keys.emit('data', Buffer.from('q'));
  await ended;
  expect(stdout.written.startsWith(ENTERED)).toBe(true);
  expect(stdout.written.endsWith(LEFT)).toBe(true);
  expect(keys.modes).toEqual([true, false]);
  expect(keys.listenerCount('data')).toBe(0);
});

it('reads nothing while it is paused, and goes on with the second p', async () => {
  const { stdout, keys, ended, reads } = start(refreshes);
  await until(() => drawn(stdout) > 0);
  keys.emit('data', 'p');
  await until(() => stdout.written.includes('PAUSED'));
  const before = reads();
  const frames = drawn(stdout);
  await until(() => drawn(stdout) >= frames + 3);
  expect(reads()).toBe(before);
  keys.emit('data', 'p');
  await until(() => reads() > before);
  keys.emit('data', '\u0003');
  await ended;
});

it.each(['SIGINT', 'SIGTERM'] as const)('gives the screen back at %s, also while a reading hangs', async (signal) => {
  const { stdout, ended, reads } = start((count) => (count === 1 ? refreshes() : new Promise(() => {})));
  await until(() => reads() === 2);
  process.emit(signal, signal);
  await ended;
  expect(stdout.written.endsWith(LEFT)).toBe(true);
  expect(process.listenerCount('SIGWINCH')).toBe(0);
});

it('keeps the last frame while the database cannot be read, and says so', async () => {
  const { stdout, keys, ended } = start((count) =>
    count === 1 ? refreshes() : Promise.reject(new Error('it is away \u001b[2J')),
  );
  await until(() => stdout.written.includes('Could not be read again, so this is old: it is away \\x1b[2J'));
  keys.emit('data', 'q');
  await ended;
});

it('leaves the screen alone when the first reading fails', async () => {
  const { stdout, ended } = start(() => Promise.reject(new Error('it is away')));
  await expect(ended).rejects.toThrow('it is away');
  expect(stdout.written).toBe('');
});

it('pauses nine times as long as a reading took, when that is more than the interval', async () => {
  const clock = new VirtualClock();
  let tookMs = 500;
  const read = (): Promise<TopSnapshot> => new Promise((resolve) => void clock.after(tookMs, () => resolve(snapshot)));
  const { keys, ended, reads } = start(read, { clock, intervalMs: 1_000 });
  await clock.advance(500 + 4_499);
  expect(reads()).toBe(1);
  tookMs = 10;
  await clock.advance(1);
  expect(reads()).toBe(2);
  await clock.advance(10 + 999);
  expect(reads()).toBe(2);
  await clock.advance(1);
  expect(reads()).toBe(3);
  keys.emit('data', 'q');
  await ended;
});
