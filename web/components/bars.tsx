import type { VNode } from 'preact';

interface Bar {
  readonly title: string;
  readonly value: number;
  readonly text: string;
}

/** A few figures next to each other, as bars with their text. */
export function Bars({ bars, label }: { readonly bars: readonly Bar[]; readonly label: string }): VNode {
  const largest = Math.max(1, ...bars.map(({ value }) => value));
  return (
    <ul class="stack" aria-label={label}>
      {bars.map(({ title, value, text }) => (
        <li key={title}>
          <div class="card-head">
            <bdi>{title}</bdi>
            <span class="muted">{text}</span>
          </div>
          <Meter share={value / largest} />
        </li>
      ))}
    </ul>
  );
}

/** How full something is; its text stands beside it. */
export function Meter({ share, isFull = false }: { readonly share: number; readonly isFull?: boolean }): VNode {
  return (
    <span class="meter" aria-hidden="true">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect width={Math.max(0, Math.min(100, share * 100))} height="6" class={isFull ? 'fill-bad' : 'fill-accent'} />
      </svg>
    </span>
  );
}
