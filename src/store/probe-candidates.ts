import { type ClaimAdmission, pickProbe } from '../gate/index.ts';
import { FIRST_VERSION } from '../retry/decision.ts';
import type { Random } from '../retry/jitter.ts';
import type { Reader } from './aside.ts';

/*
 * A probe is drawn from the jobs that are due first behind the gate, among those that the claiming worker can run. What a
 * worker cannot run would come back without a call, while a worker that can run it waits for its turn.
 */

/** Of how many due jobs a probe is drawn. */
export const PROBE_CANDIDATES = 10;

/** Whether a worker can run the job, as far as it has said which names and versions it knows. */
export function canRun(
  { knows }: Reader,
  { name, version }: { readonly name: string; readonly version: number | null },
): boolean {
  if (knows === undefined) return true;
  const known = knows.get(name);
  return known !== undefined && known >= (version ?? FIRST_VERSION);
}

/**
 * The only job that the claim takes: a probe, or one that the worker is to move aside. Null when the gate admits none of
 * both. `candidates` are in due order; the worker can run those of them that are `runnable`.
 */
export function oneOf<Candidate extends { readonly id: string }>(
  { isProbe, movesAside, state }: ClaimAdmission,
  candidates: readonly Candidate[],
  runnable: readonly Candidate[],
  random: Random,
): Candidate | null {
  if (movesAside) return candidates[0] ?? null;
  if (!isProbe) return null;
  const id = pickProbe(
    state.probes,
    runnable.map((candidate) => candidate.id),
    random,
  );
  return runnable.find((candidate) => candidate.id === id) ?? null;
}
