import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

const SHOWN_MS = 7_000;
const MOST_SHOWN = 4;
let lastId = 0;
let show: (toast: Toast) => void = () => {};

/** Says at the edge of the page what an action did. */
export function toast(text: string, tone: 'good' | 'bad' = 'good'): void {
  show({ id: ++lastId, text, isBad: tone === 'bad' });
}

export function Toasts(): VNode {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  useEffect(() => {
    show = (added) => {
      setToasts((before) => [...before.slice(1 - MOST_SHOWN), added]);
      setTimeout(() => setToasts((before) => before.filter(({ id }) => id !== added.id)), SHOWN_MS);
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, isBad }) => (
        <div key={id} class={`toast${isBad ? ' bad' : ''}`}>
          {text}
        </div>
      ))}
    </div>
  );
}
