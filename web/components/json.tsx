import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { number } from './format.ts';

const SHOWN = 5_000;

/** Data as text, never as markup. A long one is cut until the rest is asked for. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }): VNode {
  return <LongText text={JSON.stringify(value, null, 2) ?? 'nothing'} label={label} />;
}

export function LongText({ text, label }: { readonly text: string; readonly label: string }): VNode {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > SHOWN;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <section class="json" tabIndex={0} aria-label={label}>
        <bdi>{isCut ? text.slice(0, SHOWN).toWellFormed() : text}</bdi>
      </section>
      {isCut && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all {number(text.length)} characters
        </button>
      )}
    </>
  );
}
