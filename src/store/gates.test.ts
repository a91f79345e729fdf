import { describe, expect, test } from 'vitest';
import { report, steady, T0 } from '../../test/gate/facts.ts';
import { closedGate, type GateReport, type GateState } from '../gate/index.ts';
import {
  applyOrder,
  applyReports,
  GATE_HISTORY_MS,
  type GateStates,
  gateKey,
  gatesOf,
  mayForget,
  newGate,
  parentGate,
  parentOf,
  parentsToCount,
} from './gates.ts';
import type { GateKind, GateRef, WorkerReport } from './store.ts';

const gateOf = (name: string, kind: GateKind = 'resource'): GateRef => ({ kind, name });
const on = (name: string, facts: Partial<GateReport> | null, kind?: GateKind): WorkerReport => ({
  gate: gateOf(name, kind),
  report: facts === null ? null : report(facts),
});
const rows = (...states: [GateRef, GateState][]): GateStates =>
  new Map(states.map(([gate, state]) => [gateKey(gate), state]));
const refused = { environment: 12, tail: 12 };

function apply(reports: readonly WorkerReport[], states: GateStates = new Map(), now = T0) {
  const { writes, answers } = applyReports(reports, states, new Map(), now, steady);
  return { answers, writes, written: writes.map(({ gate }) => gateKey(gate)).sort() };
}

function opened(gate: GateRef): GateState {
  return applyOrder(gate, null, 'open', 'ann', T0, steady).state;
}

describe('the name of a gate', () => {
  test.each([
    ['smtp', null],
    ['webhook/a.example', 'webhook'],
    ['webhook/a/b', 'webhook'],
    ['/a', ''],
    ['a/', 'a'],
    ['', null],
  ])('%j has the parent %j', (resource, parent) => {
    expect(parentOf(resource)).toBe(parent);
    expect(parentGate(gateOf(resource))).toEqual(parent === null ? null : gateOf(parent, 'parent'));
  });

  test('is a key only of a resource', () => {
    expect(parentGate(gateOf('send/mail', 'job'))).toBeNull();
    expect(parentGate(gateOf('send/mail', 'parent'))).toBeNull();
    expect([newGate(gateOf('a/b'), T0).keyed, newGate(gateOf('a/b', 'job'), T0).keyed]).toEqual([true, false]);
  });
});

describe('the rows that a batch needs', () => {
  test('are each gate and its parent, once, in an order that does not depend on the batch', () => {
    const batch = [on('webhook/b', {}), on('smtp', {}), on('webhook/a', null), on('smtp', {}), on('smtp', {}, 'job')];
    const expected = [
      gateOf('smtp', 'job'),
      gateOf('webhook', 'parent'),
      gateOf('smtp'),
      gateOf('webhook/a'),
      gateOf('webhook/b'),
    ];
    expect(gatesOf(batch)).toEqual(expected);
    expect(gatesOf([...batch].reverse())).toEqual(expected);
  });

  test('include the number of children where one of them failed, at most once a second', () => {
    const parent = gateOf('webhook', 'parent');
    const batch = [on('webhook/a', refused), on('webhook/b', refused), on('callback/a', { alive: 1 }), on('x/a', null)];
    expect(parentsToCount(batch, new Map(), T0)).toEqual(['webhook']);
    const counted = { ...closedGate(T0), children: { living: 0, livingAt: 0, countedAt: T0, probesTat: 0 } };
    expect(parentsToCount(batch, rows([parent, counted]), T0 + 999)).toEqual([]);
    expect(parentsToCount(batch, rows([parent, counted]), T0 + 1_000)).toEqual(['webhook']);
    expect(parentsToCount(batch, rows([parent, opened(parent)]), T0 + 1_000)).toEqual([]);
  });
});

describe('reports', () => {
  test('are answered in their order, each with the gate as it is after it', () => {
    const half = { environment: 6, tail: 6 };
    const { answers } = apply([on('smtp', half), on('http', null), on('smtp', half), on('smtp', null)]);
    expect(answers.map(({ gate, state, events }) => [gate.name, state.phase, events.length])).toEqual([
      ['smtp', 'closed', 0],
      ['http', 'closed', 0],
      ['smtp', 'open', 1],
      ['smtp', 'open', 0],
    ]);
  });

  test('on one gate are one write, with all that happened', () => {
    const { writes, answers } = apply([
      on('smtp', { throttled: 1, retryAfterMs: 60_000, worker: 2 }),
      on('smtp', { ...refused, epoch: T0 + 1 }),
    ]);
    expect(writes).toHaveLength(1);
    expect(writes[0]?.events).toEqual(answers.flatMap(({ events }) => events));
    expect(writes[0]?.events.length).toBeGreaterThan(0);
    expect(writes[0]?.state).toBe(answers[1]?.state);
  });

  test('keep the events of an earlier report when a later one on the same gate changes nothing', () => {
    const { writes } = apply([on('smtp', refused), on('smtp', { alive: 1, claimedFrom: 0 })]);
    expect(writes[0]?.events.map(({ change }) => change)).toEqual(['opened']);
  });

  test('that only ask write nothing, unless time has changed the gate', () => {
    const smtp = gateOf('smtp');
    expect(apply([on('smtp', null), on('mail', null, 'job'), on('webhook/a', null)]).written).toEqual([]);
    const failing = apply([on('smtp', { environment: 4 })]).writes[0]?.state as GateState;
    expect(apply([on('smtp', null)], rows([smtp, failing]), T0 + 1_000).written).toEqual([]);
    const later = apply([on('smtp', null)], rows([smtp, failing]), T0 + 20_000);
    expect([later.written, later.answers[0]?.state.phase]).toEqual([['resource:smtp'], 'open']);
  });

  test('on a new gate count whenever their runs were claimed', () => {
    expect(apply([on('smtp', { ...refused, claimedFrom: 1 })]).answers[0]?.state.phase).toBe('open');
  });

  test.each([
    ['signs of life', { alive: 5, firstSuccesses: 5 }, false],
    ['a crash', { none: 1 }, false],
    ['a failure', { environment: 1 }, true],
    ['a 429', { throttled: 1 }, true],
    ['a wait', { retryAfterMs: 1 }, true],
  ])('with %s on a keyed gate make its row: %s', (_, facts, isWritten) => {
    const { written } = apply([on('webhook/a', facts)]);
    expect(written).toEqual(isWritten ? ['parent:webhook', 'resource:webhook/a'] : ['parent:webhook']);
    expect(apply([on('smtp', facts)]).written).toEqual(['resource:smtp']);
  });

  test('on a keyed gate that has a row are written, whatever they say', () => {
    const gate = gateOf('webhook/a');
    expect(apply([on('webhook/a', { alive: 1 })], rows([gate, newGate(gate, T0)])).written).toContain(
      'resource:webhook/a',
    );
  });

  test('on the soft gate of a job open it, and time alone may too', () => {
    const soft = gateOf('mail', 'job');
    const { answers } = apply([on('mail', refused, 'job')]);
    expect(answers[0]?.state.phase).toBe('open');
    const failing = apply([on('mail', { environment: 4 }, 'job')]).writes[0]?.state as GateState;
    expect(apply([on('mail', null, 'job')], rows([soft, failing]), T0 + 20_000).answers[0]?.state.phase).toBe('open');
  });

  test('never open a parent by themselves: neither what it saw nor time', () => {
    const parent = gateOf('webhook', 'parent');
    const state = apply([on('webhook/a', refused)]).writes.find(({ gate }) => gate.kind === 'parent')?.state;
    expect(apply([on('webhook', null, 'parent')], rows([parent, state as GateState]), T0 + 60_000)).toMatchObject({
      answers: [{ state: { phase: 'closed' } }],
      writes: [],
    });
    expect(apply([on('webhook', refused, 'parent')]).answers[0]?.state.phase).toBe('closed');
  });
});

describe('a parent', () => {
  const parent = gateOf('webhook', 'parent');

  test('that judges outage opens its children at their first failure, and no others', () => {
    const states = rows([parent, opened(parent)]);
    const batch = [
      on('webhook/a', { environment: 1 }),
      on('webhook/b', { alive: 1 }),
      on('callback/a', { environment: 1 }),
    ];
    expect(apply(batch, states).answers.map(({ state, events }) => [state.phase, events[0]?.rule])).toEqual([
      ['open', 'parent down'],
      ['closed', undefined],
      ['closed', undefined],
    ]);
  });

  test.each([
    // Counted before this batch: active and opened; opened by this batch; what the parent judges then.
    [19, 19, 1, 'open'],
    [18, 18, 1, 'closed'],
    [99, 29, 1, 'open'],
    [100, 29, 1, 'closed'],
    [0, 0, 20, 'open'],
  ])('counts %i children of which %i opened, and %i that open now: %s', (active, open, now, phase) => {
    const batch = Array.from({ length: now }, (_, host) => on(`webhook/${host}`, refused));
    const counted = new Map([['webhook', { active, opened: open }]]);
    const { writes } = applyReports(batch, new Map(), counted, T0, steady);
    expect(writes.find(({ gate }) => gate.kind === 'parent')?.state.phase).toBe(phase);
  });

  test('is not judged where its children were not counted', () => {
    const batch = Array.from({ length: 30 }, (_, host) => on(`webhook/${host}`, refused));
    expect(apply(batch).writes.find(({ gate }) => gate.kind === 'parent')?.state.phase).toBe('closed');
  });
});

describe('an order', () => {
  test.each([
    ['open', 'open', 'open', 'pinned'],
    ['close', 'closed', 'closed', 'pinned'],
    ['reset', 'closed', null, 'reset'],
  ] as const)('%s makes a gate of no row %s', (order, phase, pin, change) => {
    const { state, events } = applyOrder(gateOf('a/b'), null, order, 'ann', T0, steady);
    expect(state).toMatchObject({ phase, pin, keyed: true });
    expect(events).toMatchObject([{ change, rule: 'operator', who: 'ann', at: T0 }]);
  });

  test('unpin says nothing of a gate that is not pinned', () => {
    expect(applyOrder(gateOf('smtp'), null, 'unpin', 'ann', T0, steady).events).toEqual([]);
    const { state, events } = applyOrder(gateOf('smtp'), opened(gateOf('smtp')), 'unpin', 'ben', T0, steady);
    expect([state.pin, events[0]?.change]).toEqual([null, 'unpinned']);
  });
});

describe('a row', () => {
  const quiet = T0 + 60_000;

  test.each([
    ['a closed gate that is quiet', closedGate(T0), false, true],
    ['one that a job waits behind', closedGate(T0), true, false],
    ['an open one', { ...closedGate(T0), phase: 'open' } as GateState, false, false],
    ['a pinned one', { ...closedGate(T0), pin: 'closed' } as GateState, false, false],
    ['one that was heard of', { ...closedGate(T0), heardAt: T0 + 1_000 }, false, false],
  ])('of %s', (_, state, isWaitedFor, isForgotten) => {
    expect(mayForget(gateOf('smtp'), state, isWaitedFor, quiet)).toBe(isForgotten);
  });

  test('of a soft gate may go though jobs wait, and when it is open after a day', () => {
    const soft = gateOf('mail', 'job');
    expect(mayForget(soft, closedGate(T0), true, quiet)).toBe(true);
    const open = { ...closedGate(T0), phase: 'open' } as GateState;
    expect(mayForget(soft, open, false, quiet)).toBe(false);
    expect(mayForget(soft, open, false, T0 + 86_400_000)).toBe(true);
    expect(GATE_HISTORY_MS).toBeGreaterThan(7 * 86_400_000);
  });
});

test('the history names the worker that fails alone, not its hash', () => {
  const gate = gateOf('smtp');
  let states: GateStates = new Map();
  let now = T0;
  const send = (facts: Partial<GateReport>, worker: string) => {
    now += 10_000;
    const one = { gate, worker, report: report({ claimedFrom: now, ...facts }) };
    const { writes, answers } = applyReports([one], states, new Map(), now, steady);
    states = rows(...writes.map(({ gate: written, state }): [GateRef, GateState] => [written, state]));
    return answers.flatMap(({ events }) => events);
  };
  const events = [1, 2, 3].flatMap(() => [
    ...send({ alive: 50, environment: 0, tail: 0, worker: 2 }, 'good-worker'),
    ...send({ alive: 0, environment: 10, tail: 10, worker: 1 }, 'bad-worker'),
  ]);
  expect(events.map(({ change, who }) => [change, who])).toContainEqual(['worker-suspect', 'bad-worker']);
});
