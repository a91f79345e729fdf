import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { StoreUnavailableError } from '../errors.ts';
import { doubling, withRetries } from '../retrying.ts';
import type { Lease } from './lease.ts';

const pauses = doubling(50, 2_000);

/**
 * Repeats a store call until it is answered, for as long as any of these leases lasts; then throws its error. The call is
 * made at least once: the fence makes a late call harmless. `onRetry` hears of the first failure that is not the last.
 */
export function whileLeased<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
  onRetry: (error: unknown) => void = () => {},
): Promise<Answer> {
  return withRetries(
    clock,
    {
      policy: pauses,
      // Even an error of our own: what a run did must not be lost while there is time left to record it.
      isTransient: () => true,
      leftMs: () => leases.reduce((longest, { leftMs }) => Math.max(longest, leftMs), 0),
      onRetry: (error, failures) => {
        if (failures === 1) onRetry(error);
      },
    },
    call,
  );
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
