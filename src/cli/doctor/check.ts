import { MulliganError } from '../../errors.ts';
import { scrub } from '../../untrusted/scrub.ts';

/** `warn`: it works, but should be looked at. `bad`: jobs are lost, stuck or cannot be stored, or will be. */
export type Health = 'ok' | 'warn' | 'bad';

/** The result of one check. */
export interface Check {
  readonly name: string;
  readonly health: Health;
  /** What was found. */
  readonly found: string;
  /** What to do about it. */
  readonly advice: string | null;
}

export function ok(name: string, found: string): Check {
  return { name, health: 'ok', found, advice: null };
}

export function warn(name: string, found: string, advice: string): Check {
  return { name, health: 'warn', found, advice };
}

export function bad(name: string, found: string, advice: string): Check {
  return { name, health: 'bad', found, advice };
}

/** All trouble in one result, as bad as the worst of it; `ok` with `found` when there is none. */
export function fromTrouble(name: string, found: string, trouble: readonly Omit<Check, 'name'>[]): Check {
  if (trouble.length === 0) return ok(name, found);
  return {
    name,
    health: worst(trouble),
    found: trouble.map((one) => one.found).join('; '),
    advice: trouble.flatMap(({ advice }) => advice ?? []).join('; ') || null,
  };
}

export function worst(checks: readonly Pick<Check, 'health'>[]): Health {
  return (['bad', 'warn'] as const).find((health) => checks.some((check) => check.health === health)) ?? 'ok';
}

/** A check that throws becomes a `bad` result, and the other checks go on. */
export async function look(name: string, action: () => Promise<Check | readonly Check[]>): Promise<readonly Check[]> {
  try {
    return [await action()].flat();
  } catch (error) {
    const message = scrub(error instanceof Error ? error.message : String(error));
    const found = error instanceof MulliganError ? message : `the check failed: ${message}`;
    return [bad(name, found, 'fix the cause and run mulligan doctor again')];
  }
}
