import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { live } from './live.ts';
import { ApiError } from './request.ts';

/*
 * Data that a page shows, kept up to date: read again when something has changed, at most once per SOONEST_MS and never for more
 * than a fifth of the time, so that a slow store is not asked more often than it can answer. Polls slowly beside the stream,
 * since a store may not tell what other processes do, and faster without it. A page in the background reads nothing.
 */

const SOONEST_MS = 1_000;
const LIVE_POLL_MS = 10_000;
const POLL_MS = 4_000;
const REST_FACTOR = 4;

export interface Loaded<T> {
  /** Null until it was read for the first time. */
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly reload: () => void;
}

/** `deps`: what `load` depends on; when they change, it is read again from the beginning. */
export function useData<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [shown, setShown] = useState<{ data: T | null; error: ApiError | null }>({ data: null, error: null });
  const reloader = useRef<() => void>(() => {});
  const loader = useRef(load);
  loader.current = load;

  // The caller names what its function depends on.
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let isStale = false;
    let notBefore = 0;
    setShown(({ data }) => ({ data: deps.length === 0 ? data : null, error: null }));

    const schedule = (ms: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => void read(), ms);
    };
    const read = async (): Promise<void> => {
      if (isLoading || document.hidden) {
        isStale = true;
        return;
      }
      isLoading = true;
      isStale = false;
      const startedAt = performance.now();
      try {
        const data = await loader.current(ended.signal);
        if (!ended.signal.aborted) setShown({ data, error: null });
      } catch (error) {
        if (ended.signal.aborted) return;
        setShown(({ data }) => ({ data, error: asApiError(error) }));
      } finally {
        isLoading = false;
      }
      const now = performance.now();
      notBefore = now + Math.max(SOONEST_MS, REST_FACTOR * (now - startedAt));
      schedule(isStale ? notBefore - now : live.state === 'live' ? LIVE_POLL_MS : POLL_MS);
    };
    const changed = (): void => {
      if (isStale) return;
      isStale = true;
      if (!isLoading) schedule(Math.max(0, notBefore - performance.now()));
    };
    reloader.current = () => {
      isStale = true;
      if (!isLoading) schedule(0);
    };
    const seen = (): void => {
      if (!document.hidden) schedule(0);
    };
    const unsubscribe = live.subscribe(changed);
    document.addEventListener('visibilitychange', seen);
    void read();
    return () => {
      ended.abort();
      clearTimeout(timer);
      unsubscribe();
      document.removeEventListener('visibilitychange', seen);
    };
  }, deps);

  const reload = useCallback(() => reloader.current(), []);
  return { ...shown, reload };
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'UNEXPECTED', String(error));
}
