import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { defineJob, Mulligan, type RetentionInfo } from '../src/index.ts';
import { type Cli, it } from './support/cli.ts';

const DAY_MS = 24 * 60 * 60_000;
const library = new URL('../src/index.ts', import.meta.url).href;

/** Makes the default database of a command line, with an application that keeps its jobs for 30 days. */
async function opened({ folder }: Cli): Promise<void> {
  const job = defineJob<null>({ name: 'kept', retention: { completed: '30d' }, run: () => {} });
  await (await Mulligan.open(`sqlite:${join(folder, 'mulligan.db')}`, { jobs: [job], log: () => {} })).close();
}

describe.concurrent('mulligan retention', () => {
  it('lists what is kept, sets it by hand for one name or for all others, and resets it', async ({ cli }) => {
    await opened(cli);
    expect((await cli.run(['retention', 'list'])).stdout).toMatch(
      /^\(all others\) +1d +90d +7d +- +-\nkept +30d +90d +7d +completed=30d +-$/m,
    );
    const set = await cli.run(['retention', 'set', 'completed=7d,dead=forever', '--name', 'kept', '--by', 'ann']);
    expect(set).toMatchObject({ code: 0, stderr: '' });
    expect(set.stdout).toMatch(/^kept +7d +forever +7d +completed=30d +completed=7d, dead=forever$/m);
    await cli.run(['retention', 'set', 'cancelled=1h']);
    const { retention } = await cli.json<{ retention: RetentionInfo[] }>('retention', 'list');
    expect(retention).toMatchObject([
      { name: null, kept: { completed: DAY_MS, dead: 90 * DAY_MS, cancelled: DAY_MS / 24 } },
      { name: 'kept', kept: { completed: 7 * DAY_MS, dead: null, cancelled: DAY_MS / 24 } },
    ]);
    const reset = await cli.json<RetentionInfo>('retention', 'reset', '--name', 'kept');
    expect(reset).toMatchObject({ kept: { completed: 30 * DAY_MS, dead: 90 * DAY_MS }, set: {} });
    expect((await cli.run(['audit', 'list'])).stdout).toMatch(/retention of kept was set: completed=7d, dead=forever/);
  });

  it.for<[string, RegExp]>([
    ['completed', /^mulligan: kept: expected state=duration/],
    ['done=1d', /^mulligan: kept: expected one of completed, dead, cancelled/],
    ['dead=90', /^mulligan: kept: dead: expected a duration/],
  ])('refuses %s', async ([kept, complaint], { cli }) => {
    const { code, stderr } = await cli.run(['retention', 'set', kept]);
    expect(stderr).toMatch(complaint);
    expect(code).toBe(2);
  });

  it.for([
    ['serve', '--port', '0', '--jobs', 'jobs.ts'],
    ['work', '--jobs', 'jobs.ts'],
  ])('%s shortens nothing', async (args, { cli }) => {
    await opened(cli);
    const retention = "{ completed: '1h' }";
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob } from ${JSON.stringify(library)};
       export const kept = defineJob({ name: 'kept', retention: ${retention}, run: () => {} });`,
    );
    const running = cli.start(args);
    await running.printed(/^(Serving|Working)/m);
    const { retention: found } = await cli.json<{ retention: RetentionInfo[] }>('retention', 'list');
    expect(found.at(-1)).toMatchObject({ name: 'kept', kept: { completed: 30 * DAY_MS } });
    running.process.kill('SIGTERM');
    await running.ended;
  });
});
