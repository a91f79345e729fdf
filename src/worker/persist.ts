import type { Clock } from '../clock.ts';
import type { Lease } from './lease.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Tries a store call until it is answered, for as long as any of these leases lasts; then lets its error out.
 * It is tried at least once: the fence makes a late call harmless.
 */
export async function whileLeased<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
): Promise<Answer> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await call();
    } catch (error) {
      if (leases.every((lease) => lease.ended)) throw error;
      await new Promise<void>((resolve) => clock.after(pauseMs * (0.5 + clock.random()), resolve));
    }
  }
}
