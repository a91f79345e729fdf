import { expect, it } from 'vitest';
import { type GateInfo, unheardOf } from '../../observe/gate-info.ts';
import { gates, MOST_GATES } from './gates.ts';

const gate = (name: string, changes: Partial<GateInfo> = {}): GateInfo => ({
  ...unheardOf({ kind: changes.kind ?? 'resource', name }, null, 1_000_000),
  ...changes,
});

it('is content when all gates are closed', () => {
  expect(gates([])).toMatchObject({ health: 'ok', found: 'all are closed' });
  expect(gates([gate('smtp')])).toMatchObject({ health: 'ok', found: 'all are closed' });
});

it('warns of gates that are open or pinned and of soft gates that see an outage, with how many jobs wait', () => {
  const found = gates([
    gate('smtp', { phase: 'open', waiting: 1_468 }),
    gate('bank', { pin: 'closed', waiting: 0 }),
    gate('ping', { kind: 'job', phase: 'open' }),
    gate('healthy'),
  ]);
  expect(found).toMatchObject({
    health: 'warn',
    found: '3 gates not closed: smtp (open, waiting: 1,468 jobs), bank (closed, pinned), ping (soft gate, outage)',
    advice: expect.stringContaining('mulligan gates list'),
  });
});

it('counts gates of keys, and warns of one only when a person pinned it', () => {
  const open = Array.from({ length: MOST_GATES }, (_, n) => gate(`webhook/${n}`, { phase: 'open', waiting: 1 }));
  expect(gates(open.slice(0, 2))).toMatchObject({ health: 'ok', found: '2 gates of keys not closed' });
  expect(gates(open)).toMatchObject({ health: 'ok', found: 'at least 100 gates of keys not closed' });
  const pinned = gate('webhook/a', { phase: 'open', pin: 'open', waiting: 7 });
  expect(gates([pinned, ...open.slice(0, 1)])).toMatchObject({
    health: 'warn',
    found: '1 gate not closed: webhook/a (open, pinned, waiting: 7 jobs); 1 gate of keys not closed',
  });
});
