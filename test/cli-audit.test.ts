import { describe, expect } from 'vitest';
import type { Operation } from '../src/index.ts';
import { it } from './support/cli.ts';

describe.concurrent('mulligan audit', () => {
  it('lists what operators did, newest first, with who did it', async ({ cli }) => {
    expect((await cli.run(['audit', 'list'])).stderr).toContain('there is no database');
    const { id } = await cli.json<{ id: string }>('enqueue', 'email.send', '{}');
    await cli.json('queues', 'pause', 'default', '--by', 'ann');
    await cli.json('jobs', 'cancel', id, '--by', 'bob');
    await cli.json('gates', 'open', 'smtp', '--force', '--by', 'cat');
    await cli.json('schedules', 'set', 'nightly', 'report', '--every', '1h', '--by', 'dan');
    const { operations } = await cli.json<{ operations: Operation[] }>('audit', 'list');
    expect(operations.map(({ action, by, changed }) => [action, by, changed])).toEqual([
      ['schedule', 'dan', 0],
      ['gate', 'cat', 0],
      ['cancel', 'bob', 1],
      ['pause', 'ann', 0],
    ]);
    const { stdout } = await cli.run(['audit', 'list', '--limit', '2']);
    expect(stdout).toMatch(/^ +when +action +by +state +changed +skipped +selection +options +note\n/);
    expect(stdout).toMatch(/ gate +cat +done +0 +0 +\{\} +- +gate smtp was pinned open\n$/);
  });
});
