import { span } from '../duration.ts';
import type { GateEvent } from '../gate/index.ts';
import { type GateInfo, lastTransition } from './gate-info.ts';
import { changeWords, count, rateWords, reasonWords, startWords } from './gate-words.ts';

/* Why a gate is as it is and what happens next, in sentences for the person on call. */

export interface GateContext {
  /** False when it has no row. */
  readonly isKnown: boolean;
  /** Newest first. */
  readonly history: readonly GateEvent[];
  /** The soft gate of all keys, for the gate of one key. */
  readonly parent: GateInfo | null;
}

export function explain(gate: GateInfo, { isKnown, history, parent }: GateContext): string[] {
  return [
    ...(gate.kind === 'resource' ? nowSentences(gate, isKnown, parent) : softSentences(gate, isKnown)),
    ...whySentences(gate, history),
    ...(gate.kind === 'resource' && isKnown ? nextSentences(gate) : []),
    ...(parent?.phase === 'open'
      ? [`Most keys of its parent ${parent.name} fail at once: look at your own network.`]
      : []),
  ];
}

function nowSentences(gate: GateInfo, isKnown: boolean, parent: GateInfo | null): string[] {
  const { phase, pin, waiting, rate } = gate;
  if (!isKnown) {
    const reason =
      parent === null
        ? 'It has not been heard of lately: it is healthy, unused or misspelt.'
        : `It is healthy, unused or misspelt: keys of ${parent.name} that are well are not stored.`;
    return [`It is closed: every due job starts. ${reason}`];
  }
  const behind = `${count(waiting ?? 0, 'job')} ${waiting === 1 ? 'waits' : 'wait'} behind it`;
  if (pin === 'open') return [`It is pinned open: nothing starts, not even probes. ${behind}.`];
  if (pin === 'closed') return ['It is pinned closed: every due job starts, and failures count, whatever happens.'];
  if (phase === 'open') return [`It is open: only probes start, one at a time. ${behind}.`];
  if (phase === 'closed') return ['It is closed: every due job starts.'];
  const peak = rate.peak === 0 ? '' : ` (the proven peak is ${rateWords(rate.peak)})`;
  return [`It lets at most ${rateWords(rate.limit)} start${peak}. ${behind}.`];
}

function softSentences({ kind, name, phase }: GateInfo, isKnown: boolean): string[] {
  const holds = 'It is a soft gate: it holds nothing back.';
  if (!isKnown && kind === 'job') {
    return [
      `It is the soft gate of the job ${name}: it holds nothing back. It has not been heard of lately, so it is healthy and sees no outage.`,
    ];
  }
  if (!isKnown) return [`${holds} It has not been heard of lately, so it sees no outage.`];
  if (kind === 'parent') {
    return phase === 'closed'
      ? [`${holds} It sees no outage, so each of its keys is judged by its own runs.`]
      : [
          `${holds} Most of its keys fail at once, so each of them opens at its first failure: look at your own network.`,
        ];
  }
  if (phase === 'closed') return [`${holds} It sees no outage, so every failure counts.`];
  return [
    `${holds} It sees an outage, so failures of the environment cost no attempts until its end, for maxOutage (1 day by default), or for an hour while fewer than three jobs fail.`,
  ];
}

/** The rule and the figures of the last change of phase; of a ramp, also why the gate had opened. */
function whySentences({ kind, phase, at: now, since, downSince }: GateInfo, history: readonly GateEvent[]): string[] {
  const latest = lastTransition(history);
  const opening = history.find(({ change }) => change === 'opened') ?? null;
  const shown = phase === 'ramp' && opening !== latest ? [latest, opening] : [latest];
  const sentences = shown
    .filter((event) => event !== null)
    .map((event) => `${ago(event.at, now)} it ${changeWords(kind, event)}: ${reasonWords(event)}.`);
  // Ramps that failed belong to the outage; during a ramp the dependency answers.
  const isLonger = downSince !== null && since !== null && downSince < since && phase === 'open';
  return isLonger ? [...sentences, `The dependency has been down for ${span(now - downSince)}.`] : sentences;
}

function nextSentences(gate: GateInfo): string[] {
  const { phase, pin, at, heldUntil, budget, suspectWorkers, isDormant } = gate;
  if (pin !== null) return ['It stays so until it is unpinned.'];
  const sentences: string[] = [];
  if (heldUntil !== null) sentences.push(`The dependency asked to be left alone for ${span(heldUntil - at)} more.`);
  if (phase === 'open') {
    sentences.push(`${probeSentence(gate)} Three answers in a row let jobs start at a rising rate.`);
  }
  if (phase === 'ramp') {
    sentences.push('The rate rises while it is used and answered. The gate closes when it was not the limit for 10s.');
  }
  if (phase !== 'open' && budget.isLow) {
    const left = `${Math.max(0, Math.floor(budget.tokens))} of ${Math.floor(budget.cap)} are left`;
    sentences.push(`Retries wait for the retry budget (${left}); fresh jobs do not.`);
  }
  // An open gate has no bad worker: all fail, and one of them was the first.
  if (suspectWorkers > 0 && phase !== 'open') {
    sentences.push(
      `${count(suspectWorkers, 'worker')} failed alone and may start one job at a time: look at its network.`,
    );
  }
  if (isDormant) sentences.push('No probe was answered for 5 days: this needs a person.');
  return sentences;
}

/** A probe is an ordinary job, so it takes one that is due. */
function probeSentence({ isProbing, waiting, nextAt, at }: GateInfo): string {
  if (isProbing) return 'A probe is running now.';
  if (waiting === 0) return 'No job waits that could be its probe: the next one that is enqueued will be.';
  return `The next probe may start ${startWords(nextAt ?? at, at)}.`;
}

function ago(at: number, now: number): string {
  return now - at < 1_000 ? 'Just now' : `${span(now - at)} ago`;
}
