import { describe, expect, test } from 'vitest';
import { Gate, steady } from '../../test/gate/facts.ts';
import { admissibleAt } from './admit.ts';
import { pin, reset, unpin } from './operate.ts';
import type { Pin } from './state.ts';
import type { Transition } from './transition.ts';

const apply = (gate: Gate, change: (gate: Gate) => Transition): Gate => {
  const { state, events } = change(gate);
  gate.state = state;
  gate.events.push(...events);
  return gate;
};
const pinned = (gate: Gate, to: Pin): Gate => apply(gate, ({ state, now }) => pin(state, to, 'anna', now, steady));
const unpinned = (gate: Gate): Gate => apply(gate, ({ state, now }) => unpin(state, 'ben', now));

describe('a gate pinned open', () => {
  test('starts nothing, not even probes, whatever is reported and however long it takes', () => {
    const gate = pinned(new Gate(), 'open')
      .wait(30 * 86_400_000)
      .report({ alive: 100 });
    expect(gate.admit()).toBe(0);
    expect(gate.state.phase).toBe('open');
    expect(admissibleAt(gate.state, { pays: 'nothing' }, gate.now)).toBeNull();
  });

  test('probes at once when it is unpinned', () => {
    expect(unpinned(pinned(new Gate(), 'open')).admit()).toBe(1);
  });

  test('wins over a ramp', () => {
    const gate = pinned(new Gate().ramp(), 'open');
    expect(gate.admit()).toBe(0);
    expect(gate.state).toMatchObject({ phase: 'open', ramp: null });
  });
});

describe('a gate pinned closed', () => {
  test('starts everything: no trip, no hold, no budget', () => {
    const gate = pinned(new Gate().trip(), 'closed').report({ environment: 100, retryAfterMs: 60_000 });
    expect(gate.admit({ pays: 'retry', due: 77 })).toBe(77);
    expect(gate.state.phase).toBe('closed');
  });

  test('does not trip by time either', () => {
    const gate = pinned(new Gate().report({ environment: 4 }), 'closed').wait(20_000);
    gate.admit();
    expect(gate.state.phase).toBe('closed');
  });

  test('judges by what comes after it is unpinned', () => {
    const gate = unpinned(pinned(new Gate(), 'closed').report({ environment: 100 }));
    expect(gate.admit({ due: 77 })).toBe(77);
    expect(gate.wait(1).trip().state.phase).toBe('open');
  });

  test('has ended the outage: the next one is reported as long again when it is', () => {
    const gate = new Gate().trip();
    const failForDays = () => {
      for (let hour = 0; hour < 5 * 24 + 10; hour++) {
        gate.wait(3_600_000).admit();
        gate.report({ environment: 1 });
      }
    };
    failForDays();
    unpinned(pinned(gate, 'closed')).wait(1).trip();
    failForDays();
    expect(gate.rules.filter((rule) => rule.startsWith('dormant'))).toHaveLength(2);
  });
});

test('reset forgets everything but the peak and the outages that jobs may be refunded for', () => {
  const gate = new Gate().serve(60, 30).trip();
  const { peak, covered, epoch } = gate.state;
  apply(gate, ({ state, now }) => reset(state, 'anna', now));
  expect(gate.state).toMatchObject({ phase: 'closed', peak, covered, probes: { at: 0 } });
  expect(gate.state.epoch).toBeGreaterThan(epoch);
});

test('every change tells who made it and what the figures were', () => {
  const gate = unpinned(pinned(new Gate().report({ environment: 3 }), 'open'));
  expect(gate.events).toMatchObject([
    {
      change: 'pinned',
      rule: 'operator',
      who: 'anna',
      from: 'closed',
      to: 'open',
      figures: { environment: 3, streak: 3 },
    },
    { change: 'unpinned', rule: 'operator', who: 'ben', from: 'open', to: 'open' },
  ]);
  expect(unpinned(gate).events.length).toBe(2);
});

test('a gate that was pinned open is not taken for one that is down for days', () => {
  const gate = unpinned(pinned(new Gate(), 'open').wait(60_000));
  gate.wait(3_000).admit();
  gate.report({ environment: 1, tail: 1 });
  expect(gate.events.map(({ change }) => change)).not.toContain('dormant');
});
