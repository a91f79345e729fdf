import type { VNode } from 'preact';
import type { GateDetails, GateInfo } from '../../client/answers.ts';
import { clock, span } from '../../components/format.ts';

interface Stretch {
  readonly phase: GateInfo['phase'];
  readonly fromAt: number;
  readonly toAt: number;
}

const LEAST_SHOWN_MS = 60_000;

/** The phases of a gate as a strip in true proportion, from the oldest event on. */
export function PhaseStrip({ gate, history }: Pick<GateDetails, 'gate' | 'history'>): VNode {
  const stretches = stretchesOf(gate, history);
  const fromAt = stretches[0]?.fromAt ?? gate.at;
  const whole = Math.max(1, gate.at - fromAt);
  return (
    <figure class="timeline">
      <div
        class="timeline-strip"
        role="img"
        aria-label={stretches
          .map(({ phase, fromAt: from, toAt }) => `${phase} for ${span(toAt - from)}`)
          .join(', then ')}
      >
        {stretches.map(({ phase, fromAt: from, toAt }) => (
          <div
            key={from}
            class={`part phase-${phase}`}
            title={`${phase} for ${span(toAt - from)}`}
            style={{ flexGrow: (toAt - from) / whole }}
          >
            <span>{phase}</span>
          </div>
        ))}
      </div>
      <div class="timeline-ends">
        <span>{clock(fromAt)}</span>
        <span>now</span>
      </div>
    </figure>
  );
}

function stretchesOf(gate: GateInfo, history: GateDetails['history']): Stretch[] {
  const changes = history.filter(({ from, to }) => from !== to).toReversed();
  const first = changes[0];
  const beginsAt = Math.min(first?.at ?? gate.at, gate.at - LEAST_SHOWN_MS);
  const stretches: Stretch[] = [];
  let [fromAt, phase] = [beginsAt, first?.from ?? gate.phase];
  for (const { at, to } of changes) {
    if (at > fromAt) stretches.push({ phase, fromAt, toAt: at });
    [fromAt, phase] = [at, to];
  }
  stretches.push({ phase, fromAt, toAt: Math.max(fromAt + 1, gate.at) });
  return stretches;
}
