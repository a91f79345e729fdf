import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { assets } from '../../src/dashboard/assets.ts';
import { createDashboard } from '../../src/dashboard/index.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { nodeHandler } from '../../src/server/index.ts';
import { openApiDocument } from '../../src/server/openapi.ts';
import { routes } from '../../src/server/routes/index.ts';
import { generate } from '../../web/client/generate.ts';
import { served } from '../server/served.ts';
import { useBrowser, visit } from './browser.ts';

/** It brings no types. */
interface Express {
  use(path: string, handler: ReturnType<typeof nodeHandler>): Express;
  listen(port: number, host: string): Server;
}
const express = createRequire(import.meta.url)('express') as () => Express;

useBrowser();

it('all files together are smaller than 150 KB, compressed', () => {
  const sizes = assets.map(({ text }) => gzipSync(text).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
});

it('the typed client is that of the OpenAPI document', () => {
  const written = readFileSync(new URL('../../web/client/operations.ts', import.meta.url), 'utf8');
  expect(written, 'run node web/client/generate.ts').toBe(generate(openApiDocument(routes)));
});

it('pages come with a strict policy; hashed files are kept for good, the page itself is not', async () => {
  const { url } = await served();
  const page = await fetch(url);
  const policy = page.headers.get('content-security-policy') as string;
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(policy).not.toMatch(/unsafe|\*|https?:/);
  expect(page.headers.get('cache-control')).toBe('no-cache');
  const html = await page.text();
  expect(html).not.toMatch(/<style|style=|onload|<script(?![^>]*\bsrc=)/);
  const [, script] = /src="\.\/([^"]+)"/.exec(html) as unknown as [string, string];
  const answer = await fetch(`${url}/${script}`, { headers: { 'accept-encoding': 'gzip' } });
  expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(answer.headers.get('content-encoding')).toBe('gzip');
  expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  expect(await answer.text()).toBe(assets.find(({ path }) => path === script)?.text);
});

it('pages are not served to another host, nor where there shall be no dashboard', async () => {
  const mulligan = await Mulligan.open('memory:');
  const dashboard = await createDashboard(mulligan);
  onTestFinished(async () => {
    await dashboard.close();
    await mulligan.close();
  });
  expect((await dashboard.fetch(new Request('http://localhost/'))).status).toBe(200);
  expect((await dashboard.fetch(new Request('http://evil.example/'))).status).toBe(421);
  const { url } = await served({ server: { dashboard: false } });
  expect((await fetch(url)).status).toBe(404);
});

it('it works behind a prefix, also when the address of the page has no slash at its end', async () => {
  const mulligan = await Mulligan.open('memory:');
  await mulligan.enqueue('prefixed.job', {});
  const dashboard = await createDashboard(mulligan);
  const app = express().use('/ops/queue', nodeHandler(dashboard));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    await dashboard.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await mulligan.close();
  });
  const { port } = server.address() as { port: number };
  const page = await visit(`http://127.0.0.1:${port}/ops`, { at: 'queue' });
  await page.locator('main h1').waitFor();
  expect(new URL(page.url()).pathname).toBe('/ops/queue/');
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.getByRole('link', { name: 'prefixed.job' }).waitFor();
});

it('with basePath the whole path is handed on, and no redirect leaves the host', async () => {
  const mulligan = await Mulligan.open('memory:');
  const dashboard = await createDashboard(mulligan, { basePath: '/queue' });
  onTestFinished(async () => {
    await dashboard.close();
    await mulligan.close();
  });
  const ask = (path: string): Promise<Response> => dashboard.fetch(new Request(`http://localhost${path}`));
  const bare = await ask('/queue');
  expect([bare.status, bare.headers.get('location')]).toEqual([308, '/queue/']);
  expect((await ask('/queue/')).status).toBe(200);
  expect((await ask('/')).status).toBe(404);
  const forged = { incoming: { originalUrl: '//evil.example' } };
  expect((await dashboard.fetch(new Request('http://localhost/queue/'), forged)).headers.get('location')).toBeNull();
});
