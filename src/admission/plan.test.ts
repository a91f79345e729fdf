import { describe, expect, test } from 'vitest';
import { Model, settings, steady, T0, type Work } from '../../test/admission/model.ts';
import { Gate } from '../../test/gate/facts.ts';
import { closedGate, pin } from '../gate/index.ts';
import { type Plan, planClaim } from './plan.ts';
import { settleShares } from './shares.ts';

const never = settings({ concurrency: 1_000 });

function wanted({ wants }: Plan): Record<number, number> {
  return Object.fromEntries(wants.filter(({ want }) => want > 0).map(({ partition, want }) => [partition, want]));
}

function count(labels: readonly string[], label: string): number {
  return labels.filter((one) => one === label).length;
}

/** A gate in a ramp whose rate lets `starts` jobs start at once, at T0. */
function rampOf(starts: number): Gate {
  const gate = new Gate().ramp();
  const { ramp } = gate.state;
  if (ramp === null) throw new Error('expected a ramp');
  gate.state = { ...gate.state, ramp: { ...ramp, limit: 2 * (starts - 1), tat: gate.now, boundAt: gate.now - 1 } };
  return gate;
}

describe('priority', () => {
  for (const [first, second] of [
    [{}, { keys: [{ limit: 'l' }] }],
    [{ keys: [{ limit: 'l' }] }, {}],
  ] as const) {
    test(`holds over plain and limited jobs, ${'keys' in first ? 'limited' : 'plain'} ones first`, () => {
      const work: Work[] = [
        { due: 120, priority: 9, label: 'late', ...second },
        { due: 120, priority: 0, label: 'urgent', ...first },
      ];
      const model = new Model(work, [{}], { l: never });
      expect(count(model.starts(15, 8), 'urgent')).toBe(120);
    });
  }

  test('is not overtaken by what is served more seldom', () => {
    const model = new Model([
      { due: 9, priority: 1, label: 'x' },
      { due: 9, priority: 0, label: 'y' },
    ]);
    expect(model.starts(9).join('')).toBe('yyyyyyyyy');
  });
});

describe('shares', () => {
  test('of queues hold one place at a time, behind a limit too', () => {
    for (const keys of [[], [{ limit: 'l' }]]) {
      const model = new Model(
        [
          { due: 99, queue: 'a', label: 'a', keys },
          { due: 99, queue: 'b', label: 'b', keys },
        ],
        [
          { queue: 'a', weight: 2 },
          { queue: 'b', weight: 1 },
        ],
        { l: never },
      );
      expect(model.starts(9).join('')).toBe('abaabaaba');
    }
  });

  test('let three retries through among sixty fresh jobs', () => {
    const model = new Model([
      { due: 60, label: 'f' },
      { due: 3, lane: 'retry', label: 'r' },
    ]);
    const order = Array.from({ length: 63 }, () => model.starts(1)[0]);
    const at = order.flatMap((label, index) => (label === 'r' ? [index + 1] : []));
    expect(at).toEqual([2, 7, 12]);
  });

  test('of 0.2 carry over claims of one, whatever was rounded', () => {
    const model = new Model(
      [
        { due: 500, label: 'f' },
        { due: 500, lane: 'retry', label: 'r' },
      ],
      [{ retryShare: 0.2 }],
    );
    const order = model.starts(500);
    for (let from = 0; from < 500; from += 50) expect(count(order.slice(from, from + 50), 'r')).toBe(10);
  });

  test('of 0 give retries what fresh work leaves, and of 1 the other way round', () => {
    const work: Work[] = [
      { due: 4, label: 'f' },
      { due: 4, lane: 'retry', label: 'r' },
    ];
    expect(new Model(work, [{ retryShare: 0 }]).starts(8).join('')).toBe('ffffrrrr');
    expect(new Model(work, [{ retryShare: 1 }]).starts(8).join('')).toBe('rrrrffff');
  });

  test('are halves for retries and redrives', () => {
    const model = new Model([
      { due: 50, lane: 'redrive', label: 'd' },
      { due: 50, lane: 'retry', label: 'r' },
    ]);
    const order = model.starts(20);
    expect(count(order, 'd')).toBe(10);
    expect(order.join('')).toMatch(/^(rd|dr)+$/);
  });

  test('are not saved up while there is nothing to start', () => {
    const model = new Model(
      [
        { due: 40, queue: 'a', label: 'a' },
        { due: 40, queue: 'b', label: 'b', opensAt: T0 + 1 },
      ],
      [{ queue: 'a' }, { queue: 'b' }],
    );
    expect(count(model.starts(20), 'a')).toBe(20);
    model.now += 1;
    expect(count(model.starts(10), 'b')).toBe(5);
  });

  test('leave no place empty while something may start', () => {
    const model = new Model([
      { due: 3, label: 'f' },
      { due: 30, lane: 'retry', label: 'r' },
    ]);
    expect(model.claim({ free: 10 })).toHaveLength(10);
  });

  test('owe a busy flow no more than a claim could have given it, and one place', () => {
    const queues = [
      { queue: 'a', weight: 1, retryShare: 0.5, maxRetriesInFlight: null },
      { queue: 'b', weight: 1, retryShare: 0.5, maxRetriesInFlight: null },
    ];
    const flow = { queue: 'b', lane: 'fresh' } as const;
    const busy = [{ queue: 'a', lane: 'fresh' } as const, flow];
    const after = settleShares({}, queues, 4, Array(40).fill(flow), busy);
    expect(after.b?.queue).toBe(5);
    expect(after.a?.queue).toBe(0);
    const idle = settleShares(after, queues, 4, [], []);
    expect(idle.b?.queue).toBe(0);
  });

  test('begin at zero again, so that they never grow', () => {
    const model = new Model([{ due: 1_000_000, label: 'f' }]);
    model.starts(100);
    expect(Object.values(model.shares.a ?? {}).every((time) => time < 10)).toBe(true);
  });
});

describe('turns', () => {
  test('go by line first: keys that strangers choose take no turn of another name', () => {
    const keyed = Array.from({ length: 200 }, (): Work => ({ due: 10, line: 1_000, label: 'k' }));
    const model = new Model([...keyed, { due: 100, label: 'plain' }]);
    expect(count(model.starts(100), 'plain')).toBe(50);
    const more = new Model([...keyed, { due: 100, label: 'plain' }]);
    expect(count(more.starts(10, 10), 'plain')).toBe(50);
  });

  test('go on inside one claim and from claim to claim', () => {
    const work = ['a', 'b', 'c'].map((label): Work => ({ due: 9, label }));
    expect(new Model(work).starts(1, 9).join('')).toBe('abcabcabc');
    expect(new Model(work).starts(9).join('')).toBe('abcabcabc');
    expect(new Model(work).starts(2, 4).join('')).toBe('abcabcab'.slice(0, 4).concat('bcab'));
  });

  test('of the keys of a line go in the order in which they are offered', () => {
    const work = [0, 1, 2].map((key): Work => ({ due: 2, line: 7, label: `${key}` }));
    expect(new Model(work).starts(1, 6).join('')).toBe('012012');
  });
});

describe('a limit', () => {
  const keys = [{ limit: 'l' }];

  test('lets no more start than it has places, other jobs take the rest', () => {
    const model = new Model(
      [
        { due: 9, keys, label: 'l' },
        { due: 9, label: 'p' },
      ],
      [{}],
      { l: settings({ concurrency: 2 }) },
    );
    const labels = model.claim({ free: 8 }).map(({ label }) => label);
    expect([count(labels, 'l'), count(labels, 'p')]).toEqual([2, 6]);
    expect(model.plan?.parks).toEqual([{ partition: 0, until: null, use: 0 }]);
    expect(model.plan?.guards.uses).toMatchObject([{ limit: 'l', key: '', settingsVersion: 1 }]);
  });

  test('counts a total over all of its keys, and both of a job with two limits', () => {
    const work = ['x', 'y', 'z'].map(
      (key): Work => ({ due: 5, keys: [{ limit: 'l', key }, { limit: 'm' }], label: key }),
    );
    const bounds = { l: settings({ total: 4, concurrency: 3 }), m: settings({ concurrency: 100 }) };
    expect(new Model(work, [{}], bounds).claim({ free: 20 })).toHaveLength(4);
    const tight = { ...bounds, m: settings({ concurrency: 1 }) };
    expect(new Model(work, [{}], tight).claim({ free: 20 })).toHaveLength(1);
  });

  test('of starts per time counts each start, and says when the next may come', () => {
    const rate = { limit: 10, perMs: 1_000, burst: 4 };
    const model = new Model([{ due: 9, keys, label: 'l' }], [{}], { l: settings({ rate }) });
    const plan = model.planned({ free: 9 });
    expect(wanted(plan)).toEqual({ 0: 4 });
    expect(plan.nextAt).toBeGreaterThan(T0);
    expect(plan.nextAt).toBeLessThan(T0 + 1_000);
  });

  test('is judged by the time that has passed since the offer was read', () => {
    const rate = { limit: 1, perMs: 1_000, burst: 1 };
    const model = new Model(
      [
        { due: 9, keys },
        { due: 1, opensAt: T0 + 40 },
      ],
      [{}],
      { l: settings({ rate }) },
    );
    model.uses.set('l/', { running: 0, waiting: 0, suspects: 0, total: 0, nextStartAt: T0 + 50 });
    expect(wanted(model.planned({ free: 9 }))).toEqual({});
    expect(model.planned({ free: 9 }).nextAt).toBe(T0 + 40);
    expect(wanted(model.planned({ free: 9 }, { ageMs: 50 }))).toEqual({ 0: 1, 1: 1 });
  });

  test('leaves the turn of a retry that waits to it', () => {
    const model = new Model(
      [
        { due: 9, keys },
        { due: 1, keys, lane: 'retry' },
      ],
      [{}],
      { l: settings({ concurrency: 1 }) },
    );
    model.uses.set('l/', { running: 0, waiting: 1, suspects: 0, total: 0, nextStartAt: 0 });
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 1: 1 });
  });
});

describe('jobs that hold something while they wait in the worker', () => {
  const keys = [{ limit: 'l' }];
  const hotOf = (plan: Plan): number => plan.wants.reduce((sum, { hot }) => sum + hot, 0);

  test('get free places, and of those ahead only their part', () => {
    const model = new Model([{ due: 50, keys }, { due: 50 }], [{}], {
      l: settings({ concurrency: 1_000, rate: { limit: 90, perMs: 1, burst: 90 } }),
    });
    const plan = model.planned({ free: 2, ahead: 20, hot: 1 });
    expect(hotOf(plan)).toBe(3);
    expect(wanted(plan)).toEqual({ 0: 3, 1: 19 });
    expect(wanted(model.planned({ free: 2, ahead: 1, hot: 9 }))).toEqual({ 0: 2, 1: 1 });
  });

  test('stay owed what they were passed over for', () => {
    const model = new Model([{ due: 50, lane: 'retry' }, { due: 500 }], [{ maxRetriesInFlight: 5 }]);
    const plan = model.planned({ free: 0, ahead: 20, hot: 1 });
    expect(wanted(plan)).toEqual({ 0: 1, 1: 19 });
    expect(plan.busy).toContainEqual({ queue: 'a', lane: 'retry' });
  });

  test('are those that leave less than half of the places of their key', () => {
    const hot = (concurrency: number, running: number): number => {
      const model = new Model([{ due: 1, keys }], [{}], { l: settings({ concurrency }) });
      model.uses.set('l/', { running, waiting: 0, suspects: 0, total: 0, nextStartAt: 0 });
      return hotOf(model.planned({ free: 1 }));
    };
    expect([hot(1, 0), hot(2, 0), hot(2, 1), hot(10, 4), hot(10, 5)]).toEqual([1, 0, 1, 0, 1]);
  });

  test('are those that leave less than half of the total of their limit', () => {
    const model = new Model([{ due: 9, keys }], [{}], { l: settings({ total: 4 }) });
    expect(wanted(model.planned({ free: 0, ahead: 9, hot: 0 }))).toEqual({ 0: 2 });
  });
});

describe('retries', () => {
  test('keep to the cap of their queue, less those that run', () => {
    const model = new Model([{ due: 50, lane: 'retry' }], [{ maxRetriesInFlight: 5 }]);
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 0: 5 });
    model.running = new Map([['a', { retries: 2, suspects: 1 }]]);
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 0: 2 });
    expect(model.planned({ free: 9 }).guards.caps).toEqual([{ queue: 'a', cap: 5, keepsOneForSuspect: false }]);
  });

  test('are planned with the whole cap where nobody has counted', () => {
    const model = new Model([{ due: 50, lane: 'retry' }], [{ maxRetriesInFlight: 5 }]);
    model.running = null;
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 0: 5 });
  });

  test('leave one place to a suspect that is due, unless one runs', () => {
    const model = new Model(
      [
        { due: 50, lane: 'retry' },
        { due: 1, lane: 'suspect' },
      ],
      [{ maxRetriesInFlight: 5 }],
    );
    const plan = model.planned({ free: 9 });
    expect(wanted(plan)).toEqual({ 0: 4 });
    expect(plan.guards.caps).toEqual([{ queue: 'a', cap: 5, keepsOneForSuspect: true }]);
    model.running = new Map([['a', { retries: 0, suspects: 1 }]]);
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 0: 4 });
  });

  test('of redriven jobs have no cap', () => {
    const model = new Model([{ due: 50, lane: 'redrive' }], [{ maxRetriesInFlight: 5 }]);
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 0: 9 });
  });
});

describe('a trial', () => {
  const work: Work[] = [{ due: 9 }, { due: 2, lane: 'suspect' }, { due: 2, lane: 'suspect', queue: 'b' }];
  const queues = [{ queue: 'a', maxRetriesInFlight: 2 }, { queue: 'b' }];

  test('takes one suspect and nothing else, in turns of the queues', () => {
    const model = new Model(work, queues);
    const labels = Array.from({ length: 4 }, () => model.claim({ free: 8 }, { isTrial: true }));
    expect(
      labels
        .flat()
        .map(({ queue }) => queue)
        .join(''),
    ).toBe('abab');
    expect(labels.map((jobs) => jobs.length)).toEqual([1, 1, 1, 1]);
  });

  test('takes none beside a suspect of the queue, nor beyond the cap', () => {
    const model = new Model(work.slice(0, 2), queues);
    model.running = new Map([['a', { retries: 0, suspects: 1 }]]);
    expect(wanted(model.planned({ free: 8 }, { isTrial: true }))).toEqual({});
    model.running = new Map([['a', { retries: 2, suspects: 0 }]]);
    expect(wanted(model.planned({ free: 8 }, { isTrial: true }))).toEqual({});
    model.running = new Map([['a', { retries: 1, suspects: 0 }]]);
    expect(wanted(model.planned({ free: 8 }, { isTrial: true }))).toEqual({ 1: 1 });
  });

  test('asks no limit', () => {
    const model = new Model([{ due: 1, lane: 'suspect', keys: [{ limit: 'l' }] }], [{}], {
      l: settings({ concurrency: 1 }),
    });
    model.uses.set('l/', { running: 1, waiting: 0, suspects: 1, total: 1, nextStartAt: 0 });
    expect(wanted(model.planned({ free: 8 }, { isTrial: true }))).toEqual({ 0: 1 });
  });
});

describe('behind a gate', () => {
  const gated: Work = { due: 20, gate: 'smtp' };

  function behind(gate: Gate, ...work: Work[]): Model {
    const model = new Model([gated, ...work]);
    model.gates.set('smtp', gate.state);
    model.now = gate.now;
    return model;
  }

  test('that is closed and healthy all jobs start, and nothing is written', () => {
    const model = behind(new Gate());
    const plan = model.planned({ free: 9 });
    expect(wanted(plan)).toEqual({ 0: 9 });
    expect(plan.guards.gates).toMatchObject([{ name: 'smtp', version: 1, state: null, epoch: 0 }]);
  });

  test('that is open one probe starts, in its turn, and others take the places', () => {
    const gate = new Gate().trip();
    const model = behind(gate, { due: 20 });
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 1: 9 });
    expect(model.planned({ free: 9 }).nextAt).toBe(gate.state.probes.at);
    model.now += 2_000;
    const plan = model.planned({ free: 9 });
    expect(wanted(plan)).toEqual({ 0: 1, 1: 8 });
    expect(plan.probes).toEqual([{ gate: 'smtp', job: '0-20', partition: 0 }]);
    const [guard] = plan.guards.gates;
    expect(guard?.state?.probes.slotUntil).toBeGreaterThan(model.now);
    expect(guard?.epoch).toBe(gate.state.epoch);
    model.claim({ free: 9 });
    expect(wanted(model.planned({ free: 9 }))).toEqual({ 1: 9 });
  });

  test('a probe goes to no worker that cannot run it: that one moves a job aside, and the slot stays free', () => {
    const model = behind(new Gate().trip().wait(2_000));
    for (const knows of [new Map<string, number>(), new Map([['job', 0]])]) {
      const plan = model.planned({ free: 9 }, { knows });
      expect(wanted(plan)).toEqual({ 0: 1 });
      expect([plan.probes, plan.asides]).toEqual([[], [{ gate: 'smtp', job: '0-20', partition: 0 }]]);
      expect(plan.guards.gates.every(({ state }) => state === null)).toBe(true);
    }
    expect(wanted(model.planned({ free: 9 }, { knows: new Map([['job', 2]]) }))).toEqual({ 0: 1 });
  });

  test('that ramps its rate counts fresh jobs and retries together, and is bound only when more is due', () => {
    const gate = rampOf(4);
    const model = behind(gate, { due: 20, gate: 'smtp', lane: 'retry' });
    const plan = model.planned({ free: 9 });
    expect(Object.values(wanted(plan)).reduce((a, b) => a + b)).toBe(4);
    expect(plan.wants.every(({ want, hot }) => want === hot)).toBe(true);
    const [guard] = plan.guards.gates;
    expect(guard?.state?.ramp?.boundAt).toBe(gate.now);
    expect(guard?.state?.ramp?.tat).toBeGreaterThan(gate.now);
    const few = new Model([{ ...gated, due: 2 }]);
    few.gates.set('smtp', gate.state);
    few.now = gate.now;
    const unbound = few.planned({ free: 9 });
    expect(wanted(unbound)).toEqual({ 0: 2 });
    expect(unbound.guards.gates[0]?.state?.ramp?.boundAt).toBe(gate.state.ramp?.boundAt);
  });

  test('that is pinned open nothing starts, whatever the time', () => {
    const gate = new Gate();
    gate.state = pin(gate.state, 'open', 'ops', gate.now, steady).state;
    const plan = behind(gate).planned({ free: 9 });
    expect([wanted(plan), plan.nextAt]).toEqual([{}, null]);
  });

  test('retries that the budget pays for are charged to it, and wait when it is empty', () => {
    const gate = new Gate();
    gate.state = { ...gate.state, budget: { tokens: 2.5, at: gate.now } };
    const model = new Model([{ ...gated, lane: 'retry' }]);
    model.gates.set('smtp', gate.state);
    model.now = gate.now;
    const plan = model.planned({ free: 9 });
    expect(wanted(plan)).toEqual({ 0: 2 });
    expect(plan.wants[0]?.hot).toBe(2);
    expect(plan.guards.gates[0]?.state?.budget.tokens).toBeCloseTo(0.5);
    expect(plan.nextAt).toBeGreaterThan(gate.now);
  });
});

test('of the keys of a parent one probe starts in a plan, as its rate lets it', () => {
  const child = new Gate(closedGate(T0, { keyed: true })).trip().wait(2_000);
  const model = new Model([
    { due: 3, gate: 'webhook/x' },
    { due: 3, gate: 'webhook/y' },
  ]);
  model.now = child.now;
  const offer = model.offer();
  const gates = new Map(
    ['webhook/x', 'webhook/y'].map((name) => [name, { state: child.state, version: 1, parent: 'webhook' }] as const),
  );
  const lines = offer.lines.map((line, index) => ({
    ...line,
    partitions: line.partitions.map((one) => ({ ...one, gate: index === 0 ? 'webhook/x' : 'webhook/y' })),
  }));
  const asked = closedGate(child.now);
  // Nine others have just begun.
  const busy = { ...asked, children: { ...asked.children, probesTat: child.now + 900 } };
  const parents = new Map([['webhook', { state: busy, version: 7 }]]);
  const plan = planClaim({ ...offer, lines, gates, parents }, model.request({ free: 9 }), {}, () => 0, steady);
  expect(wanted(plan)).toEqual({ 0: 1 });
  expect(plan.guards.gates.map(({ kind, name, version, state }) => [kind, name, version, state !== null])).toEqual([
    ['parent', 'webhook', 7, true],
    ['resource', 'webhook/x', 1, true],
    ['resource', 'webhook/y', 1, true],
  ]);
});

describe('places that stay empty', () => {
  test('go to what the walk did not come to, in its order, and hot jobs get none', () => {
    const model = new Model(
      [
        { due: 1, isCounted: false, priority: 0 },
        { due: 90, isCounted: false, priority: 1 },
        { due: 90, priority: 2, keys: [{ limit: 'l' }] },
        { due: 90, isCounted: false, priority: 3, queue: 'b' },
      ],
      [{ queue: 'a' }, { queue: 'b' }],
      { l: settings({ concurrency: 1 }) },
    );
    const { wants, spill, limit } = model.planned({ free: 8 });
    expect(limit).toBe(8);
    expect(spill.map((index) => wants[index]?.partition)).toEqual([0, 1, 3]);
    expect(wants).toMatchObject([
      { partition: 0, want: 4, most: 8 },
      { partition: 3, want: 4, most: 8 },
      { partition: 1, want: 0, most: 8 },
    ]);
    expect(
      model
        .claim({ free: 8 })
        .map(({ label }) => label)
        .sort()
        .join(''),
    ).toBe('01113333');
  });

  test('never go beyond what a key has left', () => {
    const model = new Model(
      [
        { due: 1, isCounted: false },
        { due: 90, isCounted: false, priority: 9, keys: [{ limit: 'l' }] },
      ],
      [{}],
      { l: settings({ concurrency: 6 }) },
    );
    expect(model.planned({ free: 8 }).wants).toMatchObject([{ want: 8 }, { partition: 1, want: 0, most: 3 }]);
  });
});

/** Small and repeatable. */
function randoms(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test('of random offers every plan keeps all bounds and leaves no place empty that a job could have', () => {
  for (let seed = 1; seed <= 2_000; seed++) {
    const pick = randoms(seed);
    const bounds = {
      l: settings({ concurrency: 1 + pick(4) }),
      m: settings({ total: 1 + pick(5) }),
      n: settings({ rate: { limit: 10, perMs: 1_000, burst: 1 + pick(4) } }),
    };
    const lanes = ['fresh', 'retry', 'redrive'] as const;
    const work = Array.from({ length: 1 + pick(12) }, (_, id): Work => {
      const keys = (['l', 'm', 'n'] as const)
        .filter(() => pick(4) === 0)
        .map((limit) => ({ limit, key: `${pick(3)}` }));
      const queue = pick(2) === 0 ? 'a' : 'b';
      return { queue, lane: lanes[pick(3)] ?? 'fresh', priority: pick(2), line: id, due: 1 + pick(6), keys };
    });
    const cap = pick(2) === 0 ? null : 1 + pick(3);
    const queues = [{ queue: 'a', weight: 1 + pick(3), maxRetriesInFlight: cap }, { queue: 'b' }];
    const model = new Model(work, queues, bounds);
    const free = 1 + pick(10);
    const offer = model.offer();
    const plan = planClaim(offer, model.request({ free }), {}, () => 0, steady);
    const given = wanted(plan);
    const sum = (of: (part: Work) => boolean): number =>
      work.reduce((all, part, id) => all + (of(part) ? (given[id] ?? 0) : 0), 0);
    const room = ({ queue, lane, due, keys = [] }: Work, id: number): number =>
      Math.min(
        free - sum(() => true),
        due - (given[id] ?? 0),
        queue === 'a' && lane === 'retry' && cap !== null
          ? cap - sum((part) => part.queue === 'a' && part.lane === 'retry')
          : Number.POSITIVE_INFINITY,
        ...keys.map(({ limit, key }) => {
          const { concurrency, total, rate } = bounds[limit as 'l' | 'm' | 'n'];
          const ofKey = sum((part) => !!part.keys?.some((one) => one.limit === limit && one.key === key));
          const ofAll = sum((part) => !!part.keys?.some((one) => one.limit === limit));
          return Math.min((concurrency ?? 99) - ofKey, (total ?? 99) - ofAll, (rate?.burst ?? 99) - ofKey);
        }),
      );
    for (const [id, part] of work.entries()) {
      // Zero: what it could have had was given. Less: a bound was broken. More: a place stayed empty.
      const left = room(part, id);
      expect(left, `seed ${seed}, partition ${id}`).toBe(0);
    }
  }
});
