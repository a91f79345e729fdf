import type { VNode } from 'preact';

/** Of the drawing's own units: it is stretched to its box. */
const STEP = 4;
const HEIGHT = 24;
/** A single failure beside thousands is still seen. */
const LEAST = 3;

/** Figures over time as small columns, on a scale of their own; `label` says what they show. */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }): VNode {
  const most = Math.max(1, ...values);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${values.length * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <rect class="sparkline-ground" y={HEIGHT - 1} width="100%" height="1" />
      {values.map((value, index) => {
        if (value === 0) return null;
        const height = Math.max(LEAST, (value / most) * HEIGHT);
        return <rect key={index} x={index * STEP} y={HEIGHT - height} width={STEP - 1} height={height} />;
      })}
    </svg>
  );
}
