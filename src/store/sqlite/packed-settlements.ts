import type { SettleAnswer, Settlement } from '../store.ts';

/* Settlements on their way to the thread, and the answers. */

export type PackedSettlement = readonly [
  id: string,
  run: number,
  worker: string,
  outcome: Settlement['outcome'],
  decision: Settlement['decision'],
  error: Settlement['error'],
  startedAt: number,
  endedAt: number,
  refund?: Settlement['refund'],
  result?: Settlement['result'],
  progress?: Settlement['progress'],
  log?: Settlement['log'],
];

export function packSettlement(settlement: Settlement): PackedSettlement {
  const { id, run, worker, outcome, decision, error, startedAt, endedAt, refund, result, progress, log } = settlement;
  // Nearly all have none of these, and what is not there need not be copied.
  if (refund === undefined && result === undefined && progress === undefined && log === undefined)
    return [id, run, worker, outcome, decision, error, startedAt, endedAt];
  return [id, run, worker, outcome, decision, error, startedAt, endedAt, refund, result, progress, log];
}

/** About how large it is: all else is small. */
export function bytesOfSettlement({ error, decision, result, progress, log }: Settlement): number {
  const texts = (error?.message.length ?? 0) + (error?.stack?.length ?? 0) + (decision.note?.length ?? 0);
  return texts + (result?.length ?? 0) + (progress?.length ?? 0) + (log?.length ?? 0);
}

export function unpackSettlement(packed: PackedSettlement): Settlement {
  const [id, run, worker, outcome, decision, error, startedAt, endedAt, refund, result, progress, log] = packed;
  return {
    id,
    run,
    worker,
    outcome,
    decision,
    error,
    startedAt,
    endedAt,
    ...(refund && { refund }),
    ...(result !== undefined && { result }),
    ...(progress !== undefined && { progress }),
    ...(log !== undefined && { log }),
  };
}

/** Only those of a batch that are not `settled`, by their place: nearly always none. */
export type PackedAnswers = readonly (readonly [index: number, answer: SettleAnswer])[];

export function packAnswers(answers: readonly SettleAnswer[]): PackedAnswers {
  return [...answers.entries()].filter(([, answer]) => answer !== 'settled');
}

export function unpackAnswers(packed: PackedAnswers, count: number): SettleAnswer[] {
  const answers = new Array<SettleAnswer>(count).fill('settled');
  for (const [index, answer] of packed) answers[index] = answer;
  return answers;
}
