import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import { it } from './support/cli.ts';

const source = fileURLToPath(new URL('../src/index.ts', import.meta.url));

/** A file of definitions for the command line. */
const definitions = `
  import { defineJob, Unrecoverable } from ${JSON.stringify(source)};
  export const half = defineJob({
    name: 'half',
    run({ n }) {
      if (n < 0) throw new Unrecoverable('negative');
      return { half: n / 2 };
    },
  });
`;

describe.concurrent('mulligan enqueue --wait', () => {
  it('prints the result, and jobs show has it, too', async ({ cli }) => {
    writeFileSync(join(cli.folder, 'jobs.ts'), definitions);
    await cli.run(['enqueue', 'half', '{"n":2}']);
    const worker = cli.start(['work', '--jobs', 'jobs.ts']);
    const plain = await cli.run(['enqueue', 'half', '{"n":8}', '--wait', '30s']);
    expect(plain).toMatchObject({ code: 0, stdout: '{"half":4}\n', stderr: '' });
    const json = await cli.json<{ id: string }>('enqueue', 'half', '{"n":10}', '--wait');
    expect(json).toEqual({ id: expect.any(String), existed: false, result: { half: 5 } });
    expect((await cli.run(['jobs', 'show', json.id])).stdout).toMatch(/^result +\{"half":5\}$/m);
    const dead = await cli.run(['enqueue', 'half', '{"n":-1}', '--wait']);
    expect(dead).toMatchObject({ code: 1, stdout: '' });
    expect(dead.stderr).toMatch(/is dead \(unrecoverable\)\. Its last error: Unrecoverable: negative/);
    worker.process.kill('SIGTERM');
    await worker.ended;
  });

  it('gives up after its time, and says so', async ({ cli }) => {
    const late = await cli.run(['enqueue', 'half', '{"n":1}', '--wait', '200ms', '--json']);
    expect(late.code).toBe(1);
    expect(JSON.parse(late.stderr)).toMatchObject({ error: { code: 'RESULT_TIMEOUT' } });
    expect(await cli.run(['enqueue', 'half', '1', '--wait', 'soon'])).toMatchObject({ code: 2 });
  });
});

it('mulligan enqueue --tag tags the job', async ({ cli }) => {
  const { id } = await cli.json<{ id: string }>('enqueue', 'save', '1', '--tag', 'a:1', 'b');
  expect(await cli.json('jobs', 'list', '--tag', 'b')).toMatchObject({ jobs: [{ id, tags: ['a:1', 'b'] }] });
  expect(await cli.run(['enqueue', 'save', '1', '--tag', ' '])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--tag[0]: expected a text of 1 to 100 characters'),
  });
});

it('mulligan enqueue --debounce replaces the job that waits', async ({ cli }) => {
  const args = ['--key', 'k', '--debounce', '1h'];
  const first = await cli.json<{ id: string }>('enqueue', 'save', '1', ...args);
  expect(await cli.json('enqueue', 'save', '2', ...args)).toEqual({ id: first.id, existed: true, replaced: true });
  expect(await cli.json('jobs', 'show', first.id)).toMatchObject({ job: { payload: 2, state: 'scheduled' } });
  const alone = await cli.run(['enqueue', 'save', '1', '--debounce', '1h']);
  expect(alone).toMatchObject({ code: 2 });
  expect(alone.stderr).toContain('expected a key with debounce');
});

it('mulligan enqueue --throttle stores one job of the key', async ({ cli }) => {
  const args = ['--key', 'k', '--throttle', '1h'];
  const first = await cli.json<{ id: string }>('enqueue', 'save', '1', ...args);
  expect(await cli.json('enqueue', 'save', '2', ...args)).toEqual({ id: first.id, existed: true });
  expect(await cli.run(['enqueue', 'save', '1', '--throttle', '1h'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected a key with throttle'),
  });
});
