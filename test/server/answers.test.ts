import { expect, it } from 'vitest';
import { claimOne, served } from './served.ts';

it('an action without a body is one with an empty body; a body still has to be JSON', async () => {
  const { url, call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1, { delay: '1h' });
  await mulligan.schedules.set('nightly', 'a', 1, { every: '1d' });
  expect(await call('POST', `/api/v1/jobs/${id}/run-now`)).toMatchObject({ status: 200, body: { changed: true } });
  expect(await call('POST', `/api/v1/jobs/${id}/cancel`)).toMatchObject({ status: 200, body: { result: 'cancelled' } });
  expect(await call('DELETE', '/api/v1/schedules/nightly')).toMatchObject({ status: 200, body: { removed: true } });
  const { body } = await call('POST', '/api/v1/jobs');
  expect(body).toMatchObject({ status: 400, issues: [{ path: 'name' }] });
  const undeclared = await fetch(`${url}/api/v1/jobs`, { method: 'POST', body: new Blob(['{"name":"a"}']) });
  expect(undeclared.status).toBe(415);
  const paths = (await call('GET', '/openapi.json')).body.paths;
  expect(paths['/api/v1/jobs/{id}/cancel'].post.requestBody.required).toBe(false);
  expect(paths['/api/v1/jobs'].post.requestBody.required).toBe(true);
});

it('what a bulk action answers, and how long a result is waited for, is as the document says', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const { paths } = (await call('GET', '/openapi.json')).body;
  for (const path of ['/api/v1/jobs/run-now', '/api/v1/jobs/cancel', '/api/v1/dead/redrive', '/api/v1/dead/discard']) {
    const { properties } = paths[path].post.responses[200].content['application/json'].schema;
    const { body } = await call('POST', path, { name: 'a', dryRun: true });
    expect(Object.keys(body).sort()).toEqual(Object.keys(properties).sort());
  }
  const [, wait] = paths['/api/v1/jobs/{id}/result'].get.parameters;
  for (const text of ['0', '0s', '20', '1.5']) {
    expect(text).toMatch(new RegExp(wait.schema.pattern));
    expect((await call('GET', `/api/v1/jobs/${id}/result?wait=${text}`)).status).toBe(202);
  }
  expect((await call('GET', `/api/v1/jobs/${id}/result?wait=soon`)).body.issues).toEqual([
    { path: 'wait', message: expect.stringMatching(/^Expected a duration such as '500ms'/) },
  ]);
});

it('orders about what does not exist are answered as a look at it is', async () => {
  const { call } = await served();
  const looked = await call('GET', '/api/v1/schedules/nope');
  expect(looked.body).toMatchObject({ status: 404, code: 'NOT_FOUND' });
  const orders = [
    ...['pause', 'resume', 'trigger'].map((order) => `/api/v1/schedules/nope/${order}`),
    '/api/v1/limits/nope/reset',
    '/api/v1/audit/nope/stop',
    '/api/v1/queues/nope/pause',
    '/api/v1/queues/nope/resume',
  ];
  for (const path of orders) {
    expect((await call('POST', path, {})).body, path).toMatchObject({ status: 404, code: 'NOT_FOUND' });
  }
  expect((await call('PUT', '/api/v1/limits/nope', { concurrency: 1 })).body).toMatchObject({ status: 404 });
});

it('errors name what the caller sent and lacks, and nothing else', async () => {
  const { call, mulligan } = await served();
  const all = await call('POST', '/api/v1/dead/redrive', {});
  expect(all.body).toMatchObject({
    status: 400,
    detail: expect.stringMatching(/expected at least one of .*, got none\.$/),
  });
  await mulligan.enqueue('a', 1);
  const { lease } = await claimOne(call);
  const snoozed = await call('POST', '/api/v1/settle', { lease, outcome: 'snooze' });
  expect(snoozed.body.issues).toEqual([{ path: 'delay', message: expect.stringMatching(/^Expected a duration/) }]);
  expect((await call('POST', '/drain', {})).body).toMatchObject({ status: 409, title: 'The server has no handlers' });
});

it('a field that another queue has is answered with our name for it', async () => {
  const { call } = await served();
  const { status, body } = await call('POST', '/api/v1/jobs', { name: 'a', input: null, jobId: 'x', removeOnFail: 5 });
  expect(status).toBe(400);
  expect(body.issues).toEqual([
    {
      path: '',
      message:
        'Unrecognized keys: "jobId", "removeOnFail". Here it is key. One live job has it at a time. Here it is retention: { dead } of defineJob. Such as \'30d\'.',
    },
  ]);
});
