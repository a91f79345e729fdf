import { namesOf, readOptions } from './config.ts';
import { type Duration, formatDuration, parseDuration } from './duration.ts';
import { finishedStates } from './job.ts';
import type { FinishedState } from './store/retention.ts';

/** How long finished jobs are kept; null is for ever. What is left out is decided elsewhere. */
export interface RetentionOptions {
  readonly completed?: Duration | null;
  readonly dead?: Duration | null;
  readonly cancelled?: Duration | null;
}

/** The same in ms. */
export type KeptFor = Partial<Readonly<Record<FinishedState, number | null>>>;

/**
 * The shortest time for which finished jobs are kept. A job whose answer was lost is sent again under its id, and only its
 * row shows that it has been accepted, perhaps even run, before. A resend starts a minute after the first send, or a little
 * later when it waits for a key (enqueue.ts); the rest is for the call itself.
 */
export const LEAST_RETENTION_MS: number = 5 * 60_000;

const optionNames = namesOf<RetentionOptions>({ completed: true, dead: true, cancelled: true });

export function readRetention(options: RetentionOptions, what: string): KeptFor {
  const given = readOptions(options, optionNames, what);
  return Object.fromEntries(
    finishedStates.flatMap((state) => {
      const value = given[state];
      if (value === undefined) return [];
      const keptMs = value === null ? null : Math.max(LEAST_RETENTION_MS, parseDuration(value, `${what}.${state}`));
      return [[state, keptMs]];
    }),
  );
}

/** `completed=7d, dead=forever`, as flags are written. */
export function textOf(kept: KeptFor): string {
  return finishedStates
    .flatMap((state) => {
      const ms = kept[state];
      return ms === undefined ? [] : [`${state}=${durationText(ms)}`];
    })
    .join(', ');
}

export function durationText(ms: number | null): string {
  return ms === null ? 'forever' : formatDuration(ms);
}
