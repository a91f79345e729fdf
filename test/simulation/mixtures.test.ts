import { describe, expect, inject, it } from 'vitest';
import { memory, postgres, sqlite } from '../../sim/engines.ts';
import { count, type Flow, startsOf } from '../../sim/mixtures.ts';

/* Who gets the places of a worker, seen at the starts of handlers, while jobs of all kinds wait. */

const engines = [memory, sqlite, postgres(inject('postgresUrl'))];
/** More than the worker can do at any time. */
const plain: Flow = { name: 'plain', ms: 5, standing: 400 };
/** A limit that never binds. */
const limit = { name: 'shop', concurrency: 100 };
const limited: Flow = { name: 'limited', ms: 5, perSecond: 40, limit };
/** What comes within the two seconds, but for the last that came. */
const NEARLY_ALL = 72;

describe.each(engines)('on the $name store, beside a standing backlog of short jobs', (engine) => {
  const play = (...flows: Flow[]): Promise<string[]> =>
    startsOf({ seconds: 2, work: { concurrency: 4 }, flows }, engine);

  it.each([1, 5, 20])('jobs behind a limit start as they come, beside others of %i ms', async (ms) => {
    const starts = await play({ ...plain, ms }, limited);
    expect(count(starts, 'limited')).toBeGreaterThan(NEARLY_ALL);
    expect(count(starts, 'plain')).toBeGreaterThan(4_000 / ms);
  });

  it('jobs behind a limit start as they come, also when they are urgent', async () => {
    const starts = await play(plain, { ...limited, options: { priority: 0 } });
    expect(count(starts, 'limited')).toBeGreaterThan(NEARLY_ALL);
  });

  it('jobs behind a limit start as they come, also from a queue of their own', async () => {
    const flows = [plain, { ...limited, options: { queue: 'own' } }];
    const work = { concurrency: 4, queues: { default: { weight: 1 }, own: { weight: 10 } } };
    expect(count(await startsOf({ seconds: 2, work, flows }, engine), 'limited')).toBeGreaterThan(NEARLY_ALL);
  });

  it('a worker with a single place starts jobs behind a limit', async () => {
    const flows = [plain, limited];
    const starts = await startsOf({ seconds: 2, work: { concurrency: 1 }, flows }, engine);
    expect(count(starts, 'limited')).toBeGreaterThan(NEARLY_ALL);
  });

  it('jobs behind a limit that wait in numbers get a part of the places, and leave the others theirs', async () => {
    const starts = await play(plain, { ...limited, standing: 400 });
    expect(count(starts, 'limited')).toBeGreaterThan(starts.length / 5);
    expect(count(starts, 'plain')).toBeGreaterThan(starts.length / 5);
  });

  it('a key with one place is used again and again', async () => {
    const flow = { ...limited, standing: 50, perSecond: 0, limit: { name: 'shop', concurrency: 1 } };
    const starts = await play(plain, flow);
    expect(count(starts, 'limited')).toBeGreaterThan(40);
  });

  it('retries behind a limit start as they come', async () => {
    const starts = await play(plain, { ...limited, perSecond: 0, standing: 4, fails: true });
    expect(count(starts, 'limited')).toBeGreaterThan(40);
  });
});

/** Keys that strangers choose. */
const hosts: Flow = { name: 'webhook', ms: 5, keys: 200, hasResource: true, standing: 400 };
const invoice: Flow = { name: 'invoice', ms: 5, standing: 100 };
const others: readonly (readonly [string, Flow])[] = [
  ['of many keys and one without', invoice],
  ['of many keys and one of a single key', { ...invoice, hasResource: true }],
];

describe.each(engines)('on the $name store, names take turns whatever keys strangers choose', (engine) => {
  const play = async (...flows: Flow[]): Promise<number> => {
    // By then all have started once, so that those that fail are retries.
    const starts = await startsOf({ fromSecond: 1, seconds: 1, work: { concurrency: 4 }, flows }, engine);
    expect(starts.length).toBeGreaterThan(700);
    return count(starts, 'invoice') / starts.length;
  };

  it.each(others)('fresh jobs, %s', async (_, other) => {
    const share = await play(hosts, other);
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
  });

  it.each(others)('retries, %s', async (_, other) => {
    const share = await play({ ...hosts, fails: true }, { ...other, fails: true });
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
  });

  it('retries behind a limit, of many keys and one of a single key', async () => {
    const behind = (flow: Flow): Flow => ({
      ...flow,
      fails: true,
      hasResource: false,
      limit: { name: 'host', key: (key) => `${flow.name}-${key}`, concurrency: 100 },
    });
    const share = await play(behind(hosts), behind(invoice));
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
  });

  it('fresh jobs, of three names with one, ten and 200 keys, when claims take one at a time', async () => {
    const flows = [hosts, { ...invoice, hasResource: true }, { ...hosts, name: 'some', keys: 10 }];
    const long = flows.map((flow) => ({ ...flow, ms: 60 }));
    const starts = await startsOf({ seconds: 12, work: { concurrency: 1 }, flows: long }, engine);
    for (const { name } of flows) expect(count(starts, name) / starts.length).toBeGreaterThan(0.3);
  });
});

describe.each(engines)('on the $name store, shares hold for jobs that count somewhere', (engine) => {
  it('weights of queues, among jobs behind limits, also when claims take one at a time', async () => {
    const flow: Flow = { ...limited, perSecond: 0, standing: 50 };
    const flows = ['heavy', 'light'].map((name) => ({ ...flow, name, options: { queue: name } }));
    const work = { concurrency: 1, queues: { heavy: { weight: 2 }, light: { weight: 1 } } };
    const starts = await startsOf({ seconds: 2, work, flows }, engine);
    expect(count(starts, 'heavy') / starts.length).toBeGreaterThan(0.6);
    expect(count(starts, 'heavy') / starts.length).toBeLessThan(0.73);
  });

  it('the share of retries, among jobs behind limits', async () => {
    const fresh: Flow = { ...limited, perSecond: 0, standing: 200 };
    const failing: Flow = { ...fresh, name: 'failing', standing: 20, fails: true };
    const starts = await startsOf({ seconds: 2, work: { concurrency: 4 }, flows: [failing, fresh] }, engine);
    expect(count(starts, 'failing') / starts.length).toBeGreaterThan(0.1);
    expect(count(starts, 'failing') / starts.length).toBeLessThan(0.25);
  });

  it('the share of retries under maxRetriesInFlight', async () => {
    const failing: Flow = { name: 'failing', ms: 3, standing: 20, fails: true };
    const work = { concurrency: 4, maxRetriesInFlight: 5 };
    const starts = await startsOf({ seconds: 2, work, flows: [failing, { ...plain, ms: 3 }] }, engine);
    expect(count(starts, 'failing') / starts.length).toBeGreaterThan(0.1);
    expect(count(starts, 'failing') / starts.length).toBeLessThan(0.25);
  });
});
