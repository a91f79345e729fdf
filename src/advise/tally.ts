import { HOUR_MS } from '../duration.ts';
import { designEffect, NEEDED, NEEDED_HOURS, type Share, shareOf } from './bounds.ts';
import type { Life, LifeRun } from './lives.ts';

/** What became of the retries that were attempt n. */
export interface AttemptRow extends Share {
  readonly attempt: number;
  /** Of those that succeeded: from the first failure to their start, the middle one; null when none did. */
  readonly afterMs: number | null;
}

/** What retries cost and saved. */
export interface RetryCost {
  /** Runs after a failure, counted or not. */
  readonly runs: number;
  readonly runMs: number;
  /** Jobs that completed after a failure. */
  readonly recovered: number;
}

/** Retries that were attempt n, after any failure or after one of a group: counted runs behind a counted failure. */
export function attemptRows(lives: readonly Life[], group?: string): AttemptRow[] {
  const tries = lives.flatMap((life) =>
    life.runs.filter((run) => isTry(run, group)).map((run) => ({ life, run, isSuccess: run.result === 'completed' })),
  );
  return [...Map.groupBy(tries, ({ run }) => run.attempt)]
    .map(([attempt, own]): AttemptRow => {
      const succeeded = own.filter(({ isSuccess }) => isSuccess);
      const parts = [...Map.groupBy(own, ({ life }) => life.part).values()].map((part) => ({
        tried: part.length,
        succeeded: part.filter(({ isSuccess }) => isSuccess).length,
      }));
      const afterMs = quantile(
        succeeded.map(({ life, run }) => elapsedMs(life, run)),
        0.5,
      );
      return { attempt, ...shareOf(succeeded.length, own.length, designEffect(parts)), afterMs };
    })
    .sort((a, b) => a.attempt - b.attempt);
}

function isTry({ result, after }: LifeRun, group: string | undefined): boolean {
  return result !== 'uncounted' && after !== null && (group === undefined || after === group);
}

export function elapsedMs(life: Life, run: LifeRun): number {
  return Math.max(0, run.startedAt - (life.firstFailureAt ?? run.startedAt));
}

export function retryCost(lives: readonly Life[]): RetryCost {
  const retries = lives.flatMap(({ runs }) => runs.filter(({ after }) => after !== null));
  return {
    runs: retries.length,
    runMs: retries.reduce((sum, { ms }) => sum + ms, 0),
    recovered: lives.filter(({ completed, firstFailureAt }) => completed && firstFailureAt !== null).length,
  };
}

/** Whether lives are enough to say that something never happens, and what is missing. */
export interface Evidence {
  readonly jobs: number;
  readonly hours: number;
  readonly isEnough: boolean;
}

export function evidenceOf(lives: readonly Life[]): Evidence {
  const hours = new Set(
    lives.flatMap(({ firstFailureAt }) => (firstFailureAt === null ? [] : Math.floor(firstFailureAt / HOUR_MS))),
  );
  return { jobs: lives.length, hours: hours.size, isEnough: lives.length >= NEEDED && hours.size >= NEEDED_HOURS };
}

/** Null of no values. */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? null;
}
