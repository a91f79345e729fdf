import { systemClock } from '../../clock.ts';

/** Ends early when interrupted. */
export function pause(ms: number, interrupted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      timer.cancel();
      interrupted.removeEventListener('abort', wake);
      resolve();
    };
    const timer = systemClock.after(ms, wake);
    interrupted.addEventListener('abort', wake);
  });
}
