import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../errors.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import type { Call, Engine, Executed } from './engine.ts';
import { GroupCommit } from './group-commit.ts';
import { PART_BYTES } from './parts.ts';

const busy = (): never => {
  throw Object.assign(new Error('database is locked'), { errcode: 5 });
};

/** Calls on their way to an engine that does what the test says. */
function makeCommits() {
  const clock = new VirtualClock();
  const batches: { at: number; calls: unknown[] }[] = [];
  const answers = new Map<unknown, unknown>();
  const world = { execute: (_: readonly Call[]): Partial<Executed> => ({}), hints: 0, closed: 0 };
  const engine = {
    execute(calls: readonly Call[]): Executed {
      batches.push({ at: clock.monotonic(), calls: calls.map(({ args }) => args[1]) });
      const results = calls.map(({ args }) => ({ value: args[1] }));
      return { results, madeWork: false, shared: false, ...world.execute(calls) };
    },
    close: () => void world.closed++,
  };
  const commits = new GroupCommit(engine as unknown as Engine, 'jobs.db', clock, () => world.hints++);
  const add = (name: string, rows: unknown = null): void => {
    const answer = (result: { value?: unknown; error?: { code?: string } }): void => {
      answers.set(name, result.error?.code ?? result.value);
    };
    commits.add({ call: { verb: 'settle', args: [rows, name] }, answer });
  };
  const times = (): number[] => batches.map(({ at }) => at);
  return { clock, commits, add, batches, answers, world, times };
}

describe('a group commit', () => {
  it('runs all that waits as one, and gives each caller its own answer', () => {
    const { commits, add, batches, answers, world } = makeCommits();
    add('a');
    add('b');
    expect(batches).toEqual([]);
    commits.flush();
    commits.flush();
    expect(batches).toEqual([{ at: 0, calls: ['a', 'b'] }]);
    expect([...answers]).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ]);
    expect(world.hints).toBe(0);
  });

  it('hints once when something became claimable', () => {
    const { commits, add, world } = makeCommits();
    world.execute = () => ({ madeWork: true });
    add('a');
    add('b');
    commits.flush();
    expect(world.hints).toBe(1);
  });

  it('leaves what comes after 4,000 rows to the next transaction', () => {
    const { commits, add, batches } = makeCommits();
    add('a', Array(3_998));
    add('b');
    add('c', Array(1));
    add('d');
    add('e', Array(4_000));
    add('f', Array(9_000));
    add('g');
    commits.flush();
    expect(batches.map(({ calls }) => calls)).toEqual([['a', 'b', 'c'], ['d', 'e'], ['f'], ['g']]);
  });

  it('leaves new jobs beyond the bytes of a part to the next transaction', () => {
    const { commits, batches } = makeCommits();
    const payloads = 'x'.repeat(PART_BYTES / 2);
    for (let made = 0; made < 5; made++) {
      commits.add({ call: { verb: 'enqueue', args: [['id'], payloads, []] }, answer: () => {} });
    }
    commits.flush();
    expect(batches.map(({ calls }) => calls.length)).toEqual([2, 2, 1]);
  });

  it('tries again while the file is busy, and takes along what has come meanwhile', async () => {
    const { clock, commits, add, batches, answers, world, times } = makeCommits();
    world.execute = busy;
    add('a');
    commits.flush();
    add('b');
    commits.flush();
    expect(batches).toEqual([{ at: 0, calls: ['a'] }]);
    await clock.advance(1_000);
    const pauses = times()
      .slice(1)
      .map((at, index) => at - (times()[index] as number));
    expect(pauses.length).toBeGreaterThan(600);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0.5);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1.5);
    expect(answers.size).toBe(0);
    world.execute = () => ({});
    await clock.advance(3);
    expect(batches.at(-1)?.calls).toEqual(['a', 'b']);
    expect([...answers.keys()]).toEqual(['a', 'b']);
    expect(clock.pending).toBe(0);

    world.execute = busy;
    add('c');
    commits.flush();
    const before = batches.length;
    await clock.advance(1.5);
    expect(batches.length).toBeGreaterThan(before);
  });

  it('leaves a gap after each transaction while others write too, and none when it has been alone for a second', async () => {
    const { clock, commits, add, batches, answers, world, times } = makeCommits();
    const send = (name: string): void => {
      add(name);
      commits.flush();
    };
    send('a');
    send('b');
    expect(times()).toEqual([0, 0]);
    world.execute = () => ({ shared: true });
    send('c');
    world.execute = () => ({});
    send('d');
    send('e');
    expect(answers.has('d')).toBe(false);
    await clock.advance(2);
    expect(batches.at(-1)).toEqual({ at: 2, calls: ['d', 'e'] });
    await clock.advance(997);
    send('f');
    send('g');
    await clock.advance(2);
    expect(times().slice(-2)).toEqual([999, 1_001]);
    send('h');
    send('i');
    expect(times().slice(-2)).toEqual([1_001, 1_001]);
    expect(clock.pending).toBe(0);
  });

  it('runs large calls as transactions of their own while others write too, and small ones together and before', async () => {
    const { clock, commits, add, batches, world } = makeCommits();
    world.execute = () => ({ shared: true });
    const send = (name: string, rows: number): void => add(name, Array(rows));
    send('a', 1);
    commits.flush();
    send('b', 60);
    send('c', 1);
    send('d', 51);
    send('e', 49);
    send('f', 50);
    await clock.advance(2);
    // Small calls that keep coming do not keep the large ones waiting.
    for (const late of ['g', 'h', 'i']) {
      send(late, 1);
      await clock.advance(2);
    }
    await clock.advance(20);
    expect(batches.slice(1).map(({ calls }) => calls)).toEqual([['c', 'e'], ['b'], ['f'], ['d'], ['g', 'h', 'i']]);
  });

  it('gives up on a call after ten seconds, and not on those that came later', async () => {
    const { clock, commits, add, answers, world } = makeCommits();
    world.execute = busy;
    add('a');
    commits.flush();
    await clock.advance(5_000);
    add('b');
    await clock.advance(4_980);
    expect(answers.size).toBe(0);
    await clock.advance(40);
    expect([...answers]).toEqual([['a', 'STORE_BUSY']]);
    await clock.advance(5_000);
    expect(answers.get('b')).toBe('STORE_BUSY');
    expect(clock.pending).toBe(0);
  });

  it('answers everyone at once when the file cannot be used', () => {
    const { clock, commits, add, answers, world } = makeCommits();
    world.execute = () => {
      throw new StoreUnavailableError('gone');
    };
    add('a');
    add('b');
    commits.flush();
    expect([...answers.values()]).toEqual(['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE']);
    expect(clock.pending).toBe(0);
  });

  it('tries nothing more when it is closed', async () => {
    const { clock, commits, add, batches, world } = makeCommits();
    commits.close();
    expect(world.closed).toBe(1);
    world.execute = busy;
    add('a');
    commits.flush();
    commits.close();
    await clock.advance(1_000);
    expect(batches).toHaveLength(1);
  });
});
