import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Lease } from './lease.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Tries a store call until it is answered, for as long as any of these leases lasts; then lets its error out.
 * It is tried at least once: the fence makes a late call harmless. `onRetry` hears of the first failure that is not the last.
 */
export async function whileLeased<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
  onRetry: (error: unknown) => void = () => {},
): Promise<Answer> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await call();
    } catch (error) {
      const leftMs = Math.max(...leases.map((lease) => lease.leftMs));
      if (leftMs <= 0) throw error;
      if (pauseMs === FIRST_PAUSE_MS) onRetry(error);
      // Never past the end of the leases: the store may be well again shortly before it.
      const soonEnough = Math.max(FIRST_PAUSE_MS, leftMs / 2);
      const jittered = pauseMs * (0.5 + clock.random());
      await new Promise<void>((resolve) => clock.after(Math.min(soonEnough, jittered), resolve));
    }
  }
}

/** The answer, or an error when there is none in time: a call that hangs must not hang the worker. */
export function answerWithin<Answer>(clock: Clock, timeoutMs: number, call: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () =>
      reject(new StoreUnavailableError(`the store gave no answer within ${formatDuration(timeoutMs)}`)),
    );
    call.then(resolve, reject).finally(() => timer.cancel());
  });
}
