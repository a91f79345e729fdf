import { span } from '../duration.ts';
import { WINDOW_MS } from '../gate/constants.ts';
import { admissibleAt, type GateEvent, type GateFigures, type GateState } from '../gate/index.ts';
import type { GateKind, GateRef } from '../store/store.ts';

/* What happens to gates, in words for people: the log, `gates.show` and the command line use the same ones. */

/** A gate as it was after an event, and the store time of that. */
export interface GateMoment {
  readonly state: GateState;
  readonly now: number;
}

/** `gate smtp opened: streak of 12 failures; within 30s failures of at least 9 jobs and 2 workers (rule fast); next probe in 1.6s` */
export function eventLine(gate: GateRef, event: GateEvent, after?: GateMoment): string {
  const next = after === undefined || gate.kind !== 'resource' ? '' : nextWords(after);
  return `${gateTitle(gate)} ${changeWords(gate.kind, event)}: ${reasonWords(event)}${next}`;
}

export function gateTitle({ kind, name }: GateRef): string {
  switch (kind) {
    case 'resource':
      return `gate ${name}`;
    case 'job':
      return `soft gate of job ${name}`;
    case 'parent':
      return `soft gate of all ${name}/...`;
  }
}

export function changeWords(kind: GateKind, { change, to }: GateEvent): string {
  const isSoft = kind !== 'resource';
  switch (change) {
    case 'opened':
      return isSoft ? 'saw an outage begin' : 'opened';
    case 'closed':
      return isSoft ? 'saw the outage end' : 'closed';
    case 'recovering':
      return 'began to let jobs start at a rising rate';
    case 'held':
      return 'began to hold all its jobs';
    case 'worker-suspect':
      return 'let one worker start fewer jobs';
    case 'dormant':
      return 'became dormant';
    case 'pinned':
      return `was pinned ${to}`;
    case 'unpinned':
      return 'was given back to its rules';
    case 'reset':
      return 'was reset';
  }
}

/** Why it changed, with the figures of that moment and the rule that decided. */
export function reasonWords(event: GateEvent): string {
  const { rule, who, figures } = event;
  if (rule === 'operator') return `by ${who ?? 'an operator'}`;
  return `${ruleWords(rule, who, figures)} (rule ${rule})`;
}

const shortRules: Readonly<Record<string, string>> = {
  fast: 'failures in a row',
  ratio: 'most runs failed',
  slow: 'failures in a row',
  lone: 'failures in a row',
  'ramp failed: streak': 'failed again',
  'ramp failed: ratio': 'failed again',
  'parent down': 'most keys fail at once',
  'probes alive': 'probes were answered',
  'rate not used': 'all jobs could start',
  'signs of life': 'runs were answered',
  'retry-after': 'fewer calls were asked for',
  'down for 5 days': 'no probe was answered',
  'not heard of for 24 h': 'no report came in',
};

/** Why it changed, for a column of a table: the figures are not known there. */
export function shortReason({ change, rule, who }: Pick<GateEvent, 'change' | 'rule' | 'who'>): string {
  if (rule === 'operator') return `${change} by ${who ?? 'an operator'}`;
  if (who !== null) return `${rule}: ${who}`;
  const words = rule.startsWith('children ') ? 'most keys fail at once' : shortRules[rule];
  return words === undefined ? rule : `${words} (${rule})`;
}

function ruleWords(rule: string, who: string | null, figures: GateFigures): string {
  const { alive, environment, streak, heldUntil } = figures;
  switch (rule) {
    case 'fast':
      return `streak of ${count(streak, 'failure')}${sources(figures)}`;
    case 'ratio':
      return `${environment} of the last ${count(alive + environment, 'run')} failed${sources(figures)}`;
    case 'slow':
      return `streak of ${count(streak, 'failure')} in slow traffic${sources(figures)}`;
    case 'lone':
      return `streak of ${count(streak, 'failure')} and no sign of life${sources(figures)}`;
    case 'ramp failed: streak':
      return `it failed again at ${rateWords(figures.limit)}: streak of ${count(streak, 'failure')}${sources(figures)}`;
    case 'ramp failed: ratio':
      return `it failed again at ${rateWords(figures.limit)}: ${environment} of ${count(alive + environment, 'run')}`;
    case 'parent down':
      return 'most keys of its parent fail at once, so its first failure was enough';
    case 'parent back':
      return 'the outage of all keys of its parent is over';
    case 'probes alive':
      return 'three probes in a row were answered';
    case 'rate not used':
      return 'its rate has not been the limit for 10s';
    case 'signs of life':
      return `${alive} of the last ${count(alive + environment, 'run')} were answered`;
    case 'retry-after':
      return heldUntil === null ? 'it asked for fewer calls' : `it asked to be left alone until ${iso(heldUntil)}`;
    case 'one worker alone fails':
      return `worker ${who ?? 'unknown'} fails while others are answered`;
    case 'down for 5 days':
      return 'no probe was answered for 5 days';
    case 'not heard of for 24 h':
      return 'no report came in for 24 h';
    default:
      return rule.startsWith('children ') ? `${rule.slice('children '.length)} keys opened within a minute` : rule;
  }
}

/**
 * Jobs and workers are those of the window; a streak may be longer than that, or have ended before it. They are counted in
 * small sets, so there may be more of them.
 */
function sources({ distinctJobs, failingWorkers }: GateFigures): string {
  if (distinctJobs === 0 || failingWorkers === 0) return '';
  return `; within ${span(WINDOW_MS)} failures of at least ${count(distinctJobs, 'job')} and ${count(failingWorkers, 'worker')}`;
}

function nextWords({ state, now }: GateMoment): string {
  if (state.pin !== null || state.phase === 'closed') return '';
  const at = admissibleAt(state, { pays: 'nothing' }, now);
  if (state.phase === 'open') return at === null ? '' : `; next probe ${startWords(at, now)}`;
  return `; at most ${rateWords(state.ramp?.limit ?? null)}`;
}

/** When the next job may start. Text and tables must not differ, so a part of a second is not rounded to now. */
export function startWords(at: number, now: number): string {
  return at <= now ? 'now' : `in ${span(at - now)}`;
}

export function count(amount: number, what: string): string {
  return `${amount} ${what}${amount === 1 ? '' : 's'}`;
}

export function rateWords(perSecond: number | null): string {
  const rate = Number((perSecond ?? 0).toPrecision(3));
  return `${rate} ${rate === 1 ? 'job' : 'jobs'}/s`;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
