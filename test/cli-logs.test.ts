import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { it } from './support/cli.ts';

const source = fileURLToPath(new URL('../src/index.ts', import.meta.url));

const definitions = `
  import { defineJob, Unrecoverable } from ${JSON.stringify(source)};
  export const report = defineJob({
    name: 'report',
    retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1ms' } },
    run(_, { attempt, log }) {
      log.info('run ' + attempt + ' begins', { attempt });
      if (attempt === 1) throw new Error('hung up');
      for (let page = 1; page <= 6; page++) log.warn('page ' + page + '\\u001b[2J');
    },
  });
`;

it('jobs show prints the end of the newest log, and with --logs all of all runs', async ({ cli }) => {
  writeFileSync(join(cli.folder, 'jobs.ts'), definitions);
  const worker = cli.start(['work', '--jobs', 'jobs.ts']);
  const { id } = await cli.json<{ id: string }>('enqueue', 'report', '{}', '--wait', '30s');
  worker.process.kill('SIGTERM');
  await worker.ended;

  const short = (await cli.run(['jobs', 'show', id])).stdout;
  expect(short).toMatch(/^log of run 2$/m);
  expect(short).toMatch(/^ {2}\S+Z warn {2}page 6\\x1b\[2J$/m);
  expect(short).not.toContain('page 1');
  expect(short).not.toContain('log of run 1');
  expect(short).toMatch(/^ {2}--logs shows all lines of all runs$/m);

  const long = (await cli.run(['jobs', 'show', id, '--logs'])).stdout;
  expect(long).toMatch(/log of run 2\n.* info {2}run 2 begins \{"attempt":2\}\n/);
  expect(long).toMatch(/log of run 1\n.* info {2}run 1 begins \{"attempt":1\}\n/);

  const { logs } = await cli.json<{ logs: unknown[] }>('jobs', 'show', id);
  expect(logs).toMatchObject([
    { run: 2, dropped: 0, lines: [{ level: 'info', fields: { attempt: 2 } }, ...Array(6).fill({ level: 'warn' })] },
    { run: 1, dropped: 0, lines: [{ message: 'run 1 begins' }] },
  ]);
});
