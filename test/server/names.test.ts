import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { Mulligan, partsOf } from '../../src/mulligan.ts';
import { claimRequest, enqueueOne, newJob, quota } from '../../src/store/conformance/builders.ts';
import type { NewJob } from '../../src/store/store.ts';
import { it as cliTest } from '../support/cli.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { served } from './served.ts';

/* The store protocol takes the names and numbers that the library takes; of what is stored already, others can be listed. */

const impossible: readonly (readonly [string, Partial<NewJob>, RegExp])[] = [
  ['an empty resource', { resource: '' }, /^expected the name of a resource, or parent\/key, got ""/],
  ['a resource that paints', { resource: 'a\u001b[31m' }, /^expected the name of a resource/],
  ['a resource of 900 letters', { resource: 'r'.repeat(900) }, /^expected the name of a resource/],
  ['a resource without a parent', { resource: '/key' }, /^expected the name of a resource/],
  ['a resource with a key that is no stored one', { resource: `p/${'k'.repeat(201)}` }, /^expected the name of/],
  ['an empty name', { name: '' }, /^expected a text of 1 to 200 characters, none of them control characters/],
  ['a name with a control character', { name: 'a\nb' }, /^expected a text of 1 to 200 characters/],
  ['a name of 201 letters', { name: 'n'.repeat(201) }, /^expected a text of 1 to 200 characters/],
  ['an empty queue', { queue: '' }, /^expected a text of 1 to 200 characters/],
  ['an empty retry queue', { retryQueue: ' ' }, /^expected a text of 1 to 200 characters/],
  ['an empty key', { key: '' }, /^expected a text of 1 to/],
  ['17 tags', { tags: Array.from({ length: 17 }, (_, at) => `t${at}`) }, /^expected at most 16 tags/],
  ['a tag of 101 letters', { tags: ['t'.repeat(101)] }, /^expected a text of 1 to 100 characters/],
  ['a tag twice', { tags: ['t', 't'] }, /^expected each tag once/],
  ['a limit without a name', { limits: [{ limit: '', key: 'k' }] }, /^expected a text of 1 to 100 characters/],
];

it.each(impossible)('%s is refused by store/enqueue, in the words of the library', async (_, changes, message) => {
  const { call } = await served();
  const { status, body } = await call('POST', '/api/v1/store/enqueue', [[{ ...newJob(), ...changes }]]);
  expect(status).toBe(400);
  expect(body.issues[0].message).toMatch(message);
});

it('resources as definitions make them are taken', async () => {
  const { call } = await served();
  for (const resource of ['smtp', 'webhook/example.com', 'webhook/a/b', `webhook/sha256:${'0'.repeat(64)}`, null]) {
    const { status } = await call('POST', '/api/v1/store/enqueue', [[{ ...newJob(), resource }]]);
    expect([resource, status]).toEqual([resource, 200]);
  }
});

it('numbers beyond 32 bits are answered 400 on PostgreSQL, and never 500', async () => {
  await using database = await TestDatabase.create(inject('postgresUrl'));
  const { call } = await served({ target: database.url });
  for (const large of [2 ** 31, 1e15, 2 ** 53]) {
    const claim = (changes: Parameters<typeof quota>[0]) => [{ ...claimRequest(), queues: [quota(changes)] }];
    for (const verb of ['claim', 'claimLimited']) {
      const path = `/api/v1/store/${verb}`;
      expect([verb, (await call('POST', path, claim({ share: large }))).status]).toEqual([verb, 400]);
      // A cap that nothing reaches is no cap, as in the library.
      const status = Number.isSafeInteger(large) ? 200 : 400;
      expect([verb, (await call('POST', path, claim({ maxRetriesInFlight: large }))).status]).toEqual([verb, status]);
    }
    for (const query of [
      'jobs?attempts=',
      'jobs?limit=',
      'jobs/count?attempts=',
      'dead?attempts=',
      'jobs/count?limit=',
    ]) {
      expect([query, (await call('GET', `/api/v1/${query}${large}`)).status]).toEqual([query, 400]);
    }
  }
});

/** Jobs of names that an earlier version has let in. */
async function stored(mulligan: Mulligan): Promise<readonly string[]> {
  const { store } = partsOf(mulligan);
  const ids: string[] = [];
  for (const changes of [
    {},
    { resource: '' },
    { resource: 'a\u001b[31m' },
    { resource: 'r'.repeat(900) },
    { name: '' },
  ]) {
    ids.push(await enqueueOne(store, changes));
  }
  return ids;
}

cliTest(
  'a job of a name that none can have is listed beside the others, and its gate is shown as ?',
  async ({ cli }) => {
    const target = `sqlite:${join(cli.folder, 'jobs.db')}`;
    const mulligan = await Mulligan.open(target, { log: () => {} });
    const ids = await stored(mulligan);
    await mulligan.close();
    const shown = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await cli.run([...args, '--db', target]);
      expect([args, code, stderr]).toEqual([args, 0, '']);
      return stdout;
    };
    const list = await shown('jobs', 'list');
    for (const id of ids) expect(list).toContain(id);
    expect(list.match(/gate \?/g)).toHaveLength(3);
    for (const id of ids) expect(await shown('jobs', 'show', id)).toContain(id);
  },
);

it('GET /jobs/ID/waits answers for such a job', async () => {
  const { call, mulligan } = await served();
  for (const id of await stored(mulligan)) {
    const { status, body } = await call('GET', `/api/v1/jobs/${id}/waits`);
    expect([id, status]).toEqual([id, 200]);
    expect(body.reasons.length).toBeGreaterThan(0);
  }
});
