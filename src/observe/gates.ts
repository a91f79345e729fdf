import type { GateChange, GateEvent } from '../gate/index.ts';
import { parentGate } from '../store/gates.ts';
import type { GateRef } from '../store/store.ts';
import type { Events } from './events.ts';
import { eventLine, type GateMoment } from './gate-words.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

/** Where a process tells of its gates. */
export interface GateObservers {
  readonly events: Events;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** What a person should look at; the rest is information. */
const warnings: ReadonlySet<GateChange> = new Set(['opened', 'worker-suspect', 'dormant']);

/** Told by the process whose call changed the gate: one event, one log line, one count. `after` adds what comes next. */
export function reportGate(
  { events, metrics, log }: GateObservers,
  gate: GateRef,
  event: GateEvent,
  after?: GateMoment,
): void {
  metrics.gateChanged(gate, event.change);
  // Of 100,000 hosts some are always down; their parent warns when most of them are.
  const level = warnings.has(event.change) && parentGate(gate) === null ? 'warn' : 'info';
  log[level](eventLine(gate, event, after), { gate: gate.name, kind: gate.kind, change: event.change });
  events.emit('gate', () => {
    const { epoch: _, ...rest } = event;
    return { gate, ...rest };
  });
}
