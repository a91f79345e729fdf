import type { VNode } from 'preact';

interface RangesProps<Value extends string> {
  readonly ranges: readonly (readonly [Value, string])[];
  readonly chosen: Value;
  readonly choose: (value: Value) => void;
}

/** How far back charts go. */
export function Ranges<Value extends string>({ ranges, chosen, choose }: RangesProps<Value>): VNode {
  return (
    <fieldset class="filter-chips plain-fieldset">
      <legend class="visually-hidden">Range</legend>
      {ranges.map(([value, title]) => (
        <button key={value} type="button" class="chip" aria-pressed={value === chosen} onClick={() => choose(value)}>
          {title}
        </button>
      ))}
    </fieldset>
  );
}
