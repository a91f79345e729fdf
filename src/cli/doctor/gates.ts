import type { GateInfo } from '../../observe/gate-info.ts';
import { parentOf } from '../../store/gates.ts';
import { isNotable, stateText } from '../gate-facts.ts';
import { type Check, ok, warn } from './check.ts';
import { count, some } from './words.ts';

/** Each is read with its history, and gates that are not closed come first. */
export const MOST_GATES = 100;

/** Gates that hold jobs back, or see an outage. Of many keys some are always down, so these are counted and not warned of. */
export function gates(listed: readonly GateInfo[]): Check {
  const name = 'gates';
  const notable = listed.filter(isNotable);
  const keys = notable.filter(isUnpinnedKey);
  const others = notable.filter((gate) => !isUnpinnedKey(gate));
  const atLeast = notable.length === MOST_GATES ? 'at least ' : '';
  const ofKeys = keys.length === 0 ? [] : [`${atLeast}${count(keys.length, 'gate')} of keys not closed`];
  if (others.length === 0) return ok(name, ofKeys[0] ?? 'all are closed');
  const found = `${count(others.length, 'gate')} not closed: ${some(others.map(gateText))}`;
  return warn(
    name,
    [found, ...ofKeys].join('; '),
    'see mulligan gates list and mulligan gates show NAME; docs/outages.md says what to do',
  );
}

function isUnpinnedKey({ kind, name, pin }: GateInfo): boolean {
  return kind === 'resource' && parentOf(name) !== null && pin === null;
}

function gateText(gate: GateInfo): string {
  const waiting = gate.waiting === null || gate.waiting === 0 ? '' : `, waiting: ${count(gate.waiting, 'job')}`;
  return `${gate.name} (${gate.kind === 'resource' ? '' : 'soft gate, '}${stateText(gate)}${waiting})`;
}
