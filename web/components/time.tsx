import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { moment, relative } from './format.ts';

/** One timer for all times on the page. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const tick = (): void => setNow(Date.now());
    listeners.add(tick);
    timer ??= setInterval(() => {
      for (const listener of listeners) listener();
    }, 1_000);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now;
}

/** How long ago, or how long until; the point in time itself is its title. */
export function Ago({ at }: { readonly at: number }): VNode {
  const now = useNow();
  return (
    <time class="nowrap" dateTime={new Date(at).toISOString()} title={moment(at)}>
      {relative(at, now)}
    </time>
  );
}
