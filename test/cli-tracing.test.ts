import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { newJob } from '../src/store/conformance/builders.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import { it } from './support/cli.ts';

const definition = new URL('../src/definition.ts', import.meta.url).href;

it('jobs show prints the trace id of a job that has one', async ({ cli }) => {
  const store = await SqliteStore.open({ path: join(cli.folder, 'mulligan.db') });
  const traced = newJob({ trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1' });
  const untraced = newJob();
  await store.enqueue([traced, untraced]);
  await store.close();
  const [shown, other] = await Promise.all([traced, untraced].map(({ id }) => cli.run(['jobs', 'show', id])));
  expect(shown?.stdout).toMatch(/^trace +0af7651916cd43dd8448eb211c80319c$/m);
  expect(other?.stdout).not.toContain('trace');
});

it('work --tracing exports the spans that a batching processor still has when it is stopped', async ({ cli }) => {
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(cli.folder, 'node_modules'));
  writeFileSync(
    join(cli.folder, 'jobs.mts'),
    `import { defineJob } from '${definition}'; export const job = defineJob({ name: 'a', run() {} });`,
  );
  writeFileSync(
    join(cli.folder, 'telemetry.mjs'),
    `import { appendFileSync } from 'node:fs';
    import { trace } from '@opentelemetry/api';
    import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
    const exporter = {
      export(spans, done) {
        for (const { name } of spans) appendFileSync('spans.txt', name + '\\n');
        done({ code: 0 });
      },
      shutdown: async () => {},
    };
    const processor = new BatchSpanProcessor({ exporter, scheduledDelayMillis: 600_000 });
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [processor] }));`,
  );
  await cli.run(['enqueue', 'a', '1']);
  const execArgv = ['--import', './telemetry.mjs'];
  const worker = cli.start(['work', '--jobs', 'jobs.mts', '--tracing'], { execArgv });
  await worker.printed(/completed {2}a /);
  worker.process.kill('SIGTERM');
  expect(await worker.ended).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(join(cli.folder, 'spans.txt'), 'utf8')).toBe('process a\n');
});

it('work --tracing without OpenTelemetry says what to install, and makes no database', async ({ cli }) => {
  writeFileSync(
    join(cli.folder, 'jobs.mts'),
    `import { defineJob } from '${definition}'; export const job = defineJob({ name: 'a', run() {} });`,
  );
  const withoutIt = `import { registerHooks } from 'node:module';
    registerHooks({ resolve(specifier, context, next) {
      if (specifier.startsWith('@opentelemetry/')) throw new Error('not installed');
      return next(specifier, context);
    } });`;
  const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(withoutIt)}`];
  const { code, stderr } = await cli.run(['work', '--jobs', 'jobs.mts', '--tracing'], { execArgv });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'mulligan: --tracing: expected the package @opentelemetry/api, found none. Install it.\n',
  });
  expect(cli.files).toEqual(['jobs.mts']);
});
