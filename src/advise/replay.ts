import type { Life, LifeRun } from './lives.ts';

/** What another policy would have changed. */
export interface Effect {
  readonly runsSaved: number;
  readonly runMsSaved: number;
  /** Jobs that completed, and would not have. */
  readonly jobsLost: number;
  /** Runs that would have been saved, of each part that was drawn, for the bound of the total. */
  readonly savedByPart: ReadonlyMap<number | null, number>;
}

/** Says how many of a life's runs there would have been, and whether it would still have completed. */
export type Change = (life: Life) => { readonly runs: number; readonly completes: boolean };

export function effectOf(lives: readonly Life[], change: Change): Effect {
  let [runsSaved, runMsSaved, jobsLost] = [0, 0, 0];
  const byPart = new Map<number | null, number>();
  for (const life of lives) {
    const { runs, completes } = change(life);
    const saved = life.runs.length - runs;
    runsSaved += saved;
    runMsSaved += saved < 0 ? saved * meanMs(life.runs) : sumMs(life.runs.slice(runs));
    if (life.completed && !completes) jobsLost++;
    byPart.set(life.part, (byPart.get(life.part) ?? 0) + saved);
  }
  return { runsSaved, runMsSaved: Math.round(runMsSaved), jobsLost, savedByPart: byPart };
}

function sumMs(runs: readonly LifeRun[]): number {
  return runs.reduce((sum, { ms }) => sum + ms, 0);
}

function meanMs(runs: readonly LifeRun[]): number {
  return sumMs(runs) / Math.max(1, runs.length);
}

/** A life ends at its first failure that uses up the attempts, or whose error is permanent. */
export function endingAt(maxAttempts: number, permanent: ReadonlySet<string> = new Set()): Change {
  return ({ runs, completed }) => {
    const last = runs.findIndex(
      ({ result, attempt, group }) =>
        result === 'failed' && (attempt >= maxAttempts || (group !== null && permanent.has(group))),
    );
    if (last === -1) return { runs: runs.length, completes: completed };
    return { runs: last + 1, completes: completed && last === runs.length - 1 };
  };
}
