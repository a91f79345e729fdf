import type { ComponentChildren, VNode } from 'preact';
import type { JobState } from '../../src/job.ts';
import type { OutcomeKind } from '../../src/retry/outcome.ts';
import type { GateInfo } from '../client/answers.ts';
import { Icon, type IconName } from './icon.tsx';

export type Tone = 'good' | 'warn' | 'bad' | 'calm' | 'accent' | 'none';

/** A word with a shape and a colour of its own: no state is shown by colour alone. */
export function Mark(props: {
  readonly icon: IconName;
  readonly tone: Tone;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <span class={`state tone-${props.tone}`}>
      <Icon name={props.icon} />
      {props.children}
    </span>
  );
}

const stateTones: Readonly<Record<JobState, Tone>> = {
  scheduled: 'calm',
  ready: 'calm',
  retrying: 'warn',
  running: 'accent',
  completed: 'good',
  dead: 'bad',
  cancelled: 'none',
};

export function StateMark({ state, reason }: { readonly state: JobState; readonly reason?: string | null }): VNode {
  return (
    <Mark icon={state} tone={stateTones[state]}>
      {state}
      {reason ? `: ${reason}` : ''}
    </Mark>
  );
}

const outcomes: Readonly<Record<OutcomeKind, readonly [IconName, Tone]>> = {
  completed: ['completed', 'good'],
  failed: ['dead', 'bad'],
  crashed: ['crashed', 'bad'],
  snoozed: ['snoozed', 'calm'],
  released: ['released', 'calm'],
  deferred: ['open', 'warn'],
  cancelled: ['cancelled', 'none'],
};

export function OutcomeMark({ outcome }: { readonly outcome: OutcomeKind }): VNode {
  const [icon, tone] = outcomes[outcome];
  return (
    <Mark icon={icon} tone={tone}>
      {outcome}
    </Mark>
  );
}

const phases: Readonly<Record<GateInfo['phase'], readonly [IconName, Tone, string]>> = {
  closed: ['completed', 'good', 'closed: jobs start'],
  open: ['open', 'bad', 'open: jobs wait'],
  ramp: ['ramp', 'warn', 'ramping up'],
};

export function GateMark({ gate }: { readonly gate: Pick<GateInfo, 'phase' | 'pin'> }): VNode {
  const [icon, tone, words] = phases[gate.phase];
  if (gate.pin === null) {
    return (
      <Mark icon={icon} tone={tone}>
        {words}
      </Mark>
    );
  }
  return (
    <Mark icon="pin" tone="accent">
      pinned {gate.pin}
    </Mark>
  );
}
