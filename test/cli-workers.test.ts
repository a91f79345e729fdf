import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { RegisteredWorker } from '../src/store/store.ts';
import { it } from './support/cli.ts';

const library = new URL('../src/index.ts', import.meta.url).href;
const JOBS = `
import { defineJob } from ${JSON.stringify(library)};
export const send = defineJob({ name: 'email.send', queue: 'emails', run() {} });
`;

describe.concurrent('mulligan workers list', () => {
  it('names each worker with its version, queues and jobs, until it has stopped', async ({ cli }) => {
    writeFileSync(join(cli.folder, 'jobs.ts'), JOBS);
    const worker = cli.start(['work', '--jobs', 'jobs.ts', '--app-version', '1.4.2']);
    await worker.printed(/^Working on emails/m);
    await cli.json('enqueue', 'email.send', '{}', '--queue', 'emails');
    await worker.printed(/completed {2}email\.send/);
    const { workers } = await cli.json<{ workers: RegisteredWorker[] }>('workers', 'list');
    expect(workers).toMatchObject([
      { version: '1.4.2', pid: worker.process.pid, queues: ['emails'], jobs: ['email.send'], alive: true },
    ]);
    const { stdout } = await cli.run(['workers', 'list']);
    expect(stdout).toMatch(/^worker +version +host +pid +running +blocked +queues +jobs +started +seen\n/);
    expect(stdout).toMatch(/ 1\.4\.2 .* [01]\/10 +\d+(ms|s|\.\ds) +emails +email\.send .* ago/);
    worker.process.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
    expect(await cli.run(['workers', 'list'])).toMatchObject({
      code: 0,
      stdout: 'No worker has registered. Start one with mulligan work, or with mulligan.work() in a program.\n',
    });
  });
});
