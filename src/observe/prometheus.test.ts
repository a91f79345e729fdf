import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readExposition, type Sample } from '../../test/support/exposition.ts';
import { Counter, Gauge, Histogram, MOST_SERIES } from './prometheus.ts';

function samples(metric: { readonly name: string; render(): string }): Sample[] {
  return readExposition(metric.render()).get(metric.name)?.samples as Sample[];
}

describe('a counter', () => {
  it('counts each combination of labels apart', () => {
    const counter = new Counter('runs_total', 'Finished runs.');
    counter.add({ queue: 'a' });
    counter.add({ queue: 'b' });
    counter.add({ queue: 'a' });
    expect(counter.render()).toBe(
      '# HELP runs_total Finished runs.\n# TYPE runs_total counter\nruns_total{queue="a"} 2\nruns_total{queue="b"} 1\n',
    );
  });

  it('that has counted nothing yet is still announced', () => {
    expect(new Counter('runs_total', 'Finished runs.').render()).toBe(
      '# HELP runs_total Finished runs.\n# TYPE runs_total counter\n',
    );
  });
});

describe('labels', () => {
  it.each([
    ['a quote', 'say "hi"', String.raw`say \"hi\"`],
    ['a backslash', String.raw`C:\new`, String.raw`C:\\new`],
    ['a line feed', 'a\nb', String.raw`a\nb`],
    ['all of them', 'a\\"\n\\n', String.raw`a\\\"\n\\n`],
  ])('with %s are escaped', (_, name, text) => {
    const counter = new Counter('runs_total', 'x');
    counter.add({ name });
    expect(counter.render()).toContain(`runs_total{name="${text}"} 1\n`);
  });

  it('are escaped, whatever the names are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (queue, name) => {
        const counter = new Counter('runs_total', 'x');
        counter.add({ queue, name });
        expect(samples(counter)).toEqual([{ name: 'runs_total', labels: { queue, name }, value: 1 }]);
      }),
    );
  });

  it('that mean different things stay apart, however they are written', () => {
    const counter = new Counter('runs_total', 'x');
    counter.add({ queue: 'a",name="b', name: '' });
    counter.add({ queue: 'a', name: 'b' });
    expect(samples(counter)).toHaveLength(2);
  });
});

describe('a gauge', () => {
  it('adds up what it is given under the same labels, and has no braces without labels', () => {
    const gauge = new Gauge('jobs', 'x');
    gauge.add({ state: 'ready' }, 5);
    gauge.add({ state: 'ready' }, 2);
    gauge.add({}, 0);
    expect(gauge.render().split('\n').slice(2)).toEqual(['jobs{state="ready"} 7', 'jobs 0', '']);
  });
});

describe('a histogram', () => {
  it('without labels is valid', () => {
    const histogram = new Histogram('batch_size', 'x', [1]);
    histogram.observe({}, 3);
    expect(samples(histogram)).toEqual([
      { name: 'batch_size_bucket', labels: { le: '1' }, value: 0 },
      { name: 'batch_size_bucket', labels: { le: '+Inf' }, value: 1 },
      { name: 'batch_size_sum', labels: {}, value: 3 },
      { name: 'batch_size_count', labels: {}, value: 1 },
    ]);
  });

  it('has cumulative buckets, with the bound itself inside, and one for everything', () => {
    const histogram = new Histogram('wait_seconds', 'x', [0.5, 1, 10]);
    for (const value of [0.1, 0.5, 0.7, 1, 5, 11, 1_000]) histogram.observe({ queue: 'a' }, value);
    const labels = 'queue="a"';
    expect(histogram.render()).toBe(
      [
        '# HELP wait_seconds x',
        '# TYPE wait_seconds histogram',
        `wait_seconds_bucket{${labels},le="0.5"} 2`,
        `wait_seconds_bucket{${labels},le="1"} 4`,
        `wait_seconds_bucket{${labels},le="10"} 5`,
        `wait_seconds_bucket{${labels},le="+Inf"} 7`,
        `wait_seconds_sum{${labels}} 1018.3`,
        `wait_seconds_count{${labels}} 7`,
        '',
      ].join('\n'),
    );
  });

  it('is valid whatever is observed', () => {
    const values = fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { minLength: 1 });
    fc.assert(
      fc.property(values, (all) => {
        const histogram = new Histogram('wait_seconds', 'x', [0.1, 1, 60, 3_600]);
        for (const value of all) histogram.observe({ queue: 'a' }, value);
        const count = samples(histogram).find(({ name }) => name === 'wait_seconds_count');
        expect(count?.value).toBe(all.length);
        for (const bound of [0.1, 1, 60, 3_600]) {
          const bucket = samples(histogram).find(({ labels }) => labels.le === String(bound));
          expect(bucket?.value).toBe(all.filter((value) => value <= bound).length);
        }
      }),
    );
  });
});

describe('beyond a thousand series', () => {
  const many = Array.from({ length: MOST_SERIES + 500 }, (_, n) => `made-up-${n}`);

  it('the rest is counted together, so that made-up names do not fill the memory', () => {
    const counter = new Counter('runs_total', 'x');
    for (const name of many) counter.add({ queue: 'default', name, outcome: 'failed' });
    counter.add({ queue: 'default', name: 'made-up-0', outcome: 'failed' });
    const all = samples(counter);
    expect(all).toHaveLength(MOST_SERIES + 1);
    expect(all.find(({ labels }) => labels.name === 'made-up-0')?.value).toBe(2);
    expect(all.at(-1)).toMatchObject({ labels: { queue: 'other', name: 'other', outcome: 'failed' }, value: 500 });
  });

  it('outcomes and states are still counted separately', () => {
    const gauge = new Gauge('jobs', 'x');
    for (const name of many) {
      gauge.add({ queue: 'q', name, state: 'ready' }, 2);
      gauge.add({ queue: 'q', name, state: 'dead' }, 3);
    }
    const others = samples(gauge).filter(({ labels }) => labels.name === 'other');
    expect(others).toMatchObject([
      { labels: { queue: 'other', state: 'ready' }, value: 2 * (many.length - MOST_SERIES / 2) },
      { labels: { queue: 'other', state: 'dead' }, value: 3 * (many.length - MOST_SERIES / 2) },
    ]);
  });

  it('a histogram stays as small', () => {
    const histogram = new Histogram('wait_seconds', 'x', [1]);
    for (const name of many) histogram.observe({ name }, 2);
    const counts = samples(histogram).filter(({ name }) => name === 'wait_seconds_count');
    expect(counts).toHaveLength(MOST_SERIES + 1);
    expect(counts.at(-1)).toMatchObject({ labels: { name: 'other' }, value: 500 });
  });
});
