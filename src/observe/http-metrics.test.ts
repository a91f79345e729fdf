import { expect, it } from 'vitest';
import { readExposition } from '../../test/support/exposition.ts';
import { HttpMetrics } from './http-metrics.ts';

it('requests are counted by route, method and status, and timed by route and method', () => {
  const metrics = new HttpMetrics('mulligan');
  metrics.answered({ route: '/jobs/:id', method: 'GET', status: 200 }, 20);
  metrics.answered({ route: '/jobs/:id', method: 'GET', status: 404 }, 2);
  const families = readExposition(metrics.render());
  expect(families.get('mulligan_http_requests_total')?.samples.map(({ labels, value }) => [labels, value])).toEqual([
    [{ route: '/jobs/:id', method: 'GET', status: '200' }, 1],
    [{ route: '/jobs/:id', method: 'GET', status: '404' }, 1],
  ]);
  const sum = families.get('mulligan_http_request_duration_seconds')?.samples.find(({ name }) => name.endsWith('_sum'));
  expect(sum).toMatchObject({ labels: { route: '/jobs/:id', method: 'GET' }, value: 0.022 });
});

it('no client can make the labels grow for ever', () => {
  const metrics = new HttpMetrics('mulligan');
  for (let n = 0; n < 3_000; n++) {
    metrics.answered({ route: `/made-up/${n}`, method: `M${n}`, status: 404 }, 1);
  }
  const { samples = [] } = readExposition(metrics.render()).get('mulligan_http_requests_total') ?? {};
  expect(samples).toHaveLength(1_001);
  expect(new Set(samples.map(({ labels }) => labels.method))).toEqual(new Set(['other']));
});
