import { expect, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import { commanded } from './commanded.ts';
import { served } from './served.ts';

it('a command that lacks a token, or a scope, says so and ends with 1; a job that it stored is named', async () => {
  const { token, stored } = createToken('producer', ['write']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  const list = ['jobs', 'list', '--db', url];
  const none = await commanded(list, {});
  expect(none).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/needs a token, and got none\. Set MULLIGAN_TOKEN,/),
  });
  expect(none.stderr).not.toMatch(/MULLIGAN_DB|\*\*\*/);
  const wrong = await commanded([...list, '--json'], { MULLIGAN_TOKEN: 'another' });
  expect(JSON.parse(wrong.stderr).error).toMatchObject({
    code: 'UNAUTHENTICATED',
    message: expect.stringMatching(/got one that it does not know/),
  });
  const lacking = await commanded([...list, '--json'], { MULLIGAN_TOKEN: token });
  expect([lacking.code, JSON.parse(lacking.stderr).error.code]).toEqual([1, 'FORBIDDEN']);
  const waited = await commanded(['enqueue', 'a', '1', '--wait', '2s', '--db', url], { MULLIGAN_TOKEN: token });
  const [job] = await mulligan.jobs.list({ name: 'a' });
  expect(waited).toEqual({ code: 1, stdout: `${job?.id}\n`, stderr: expect.stringMatching(/is stored;.*scope read/s) });
});
