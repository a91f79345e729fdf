import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  readonly title: string;
  /** Of the style's chart colours. */
  readonly colour: 1 | 2 | 3 | 4;
  /** So that lines differ without colour, too. */
  readonly dash?: readonly number[];
  readonly values: readonly (number | null)[];
  /** Another one, between which and this one the area is filled. */
  readonly downTo?: readonly (number | null)[];
}

interface ChartProps {
  readonly label: string;
  /** Seconds since the epoch, or any other figure with `x`. */
  readonly at: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
  readonly y: (value: number) => string;
  /** How figures of the horizontal axis are written; left out, they are times. */
  readonly x?: (value: number) => string;
  /** A horizontal line, such as a bound. */
  readonly line?: { readonly at: number; readonly title: string };
  /** A vertical line, where something happened. */
  readonly mark?: { readonly at: number; readonly title: string };
  /** How values are drawn; left out, as lines. Bars of later series stand before those of earlier ones, and are narrower. */
  readonly kind?: 'steps' | 'bars';
}

const FEW = 12;

/** A chart that follows its box, its data and the theme. What it shows is also in its legend and its label. */
export function Chart({ label, at, series, height = 170, y, x, line, mark, kind }: ChartProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = JSON.stringify([
    series.map(({ title, colour, dash, downTo }) => [title, colour, dash, downTo !== undefined]),
    line,
    mark,
    height,
  ]);
  const data = [
    at,
    ...series.flatMap(({ values, downTo }) => (downTo === undefined ? [values] : [values, downTo])),
  ] as uPlot.AlignedData;
  const drawn = useRef(data);
  drawn.current = data;

  // `shape` stands for the series.
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        optionsOf(element, {
          label,
          at,
          series,
          height,
          y,
          ...(kind && { kind }),
          ...(x && { x }),
          ...(line && { line }),
          ...(mark && { mark }),
        }),
        drawn.current,
        element,
      );
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    addEventListener('themechange', draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', draw);
      removeEventListener('themechange', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data), [data]);
  return (
    <figure class="stack chart" aria-label={label}>
      <div ref={box} class="chart-box" aria-hidden="true" />
      <Legend series={series} {...(line && { line })} {...(mark && { mark })} />
    </figure>
  );
}

function Legend({ series, line, mark }: Pick<ChartProps, 'series' | 'line' | 'mark'>): VNode {
  return (
    <figcaption class="legend">
      {series.map(({ title, colour, dash }) => (
        <span key={title}>
          <Stroke className={`stroke-${colour}`} {...(dash && { dash })} />
          <bdi>{title}</bdi>
        </span>
      ))}
      {line !== undefined && (
        <span>
          <Stroke className="stroke-line" dash={[2, 3]} />
          {line.title}
        </span>
      )}
      {mark !== undefined && (
        <span>
          <svg viewBox="0 0 18 8" class="stroke-mark" aria-hidden="true">
            <path d="M9 0v8" stroke-width="2.5" />
          </svg>
          {mark.title}
        </span>
      )}
    </figcaption>
  );
}

function Stroke({ className, dash }: { readonly className: string; readonly dash?: readonly number[] }): VNode {
  return (
    <svg viewBox="0 0 18 8" class={className} aria-hidden="true">
      <path d="M0 4h18" stroke-width="2.5" stroke-dasharray={dash?.join(' ')} />
    </svg>
  );
}

function optionsOf(element: HTMLElement, { series, height = 170, y, x, line, mark, kind }: ChartProps): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour('--muted'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: colour('--chart-grid'), width: 1 },
    ticks: { show: false },
  };
  const bands: uPlot.Band[] = [];
  const drawn = series.flatMap((one, index): uPlot.Series[] => {
    const stroke = colour(`--chart-${one.colour}`);
    const own: uPlot.Series = {
      label: one.title,
      stroke,
      width: 2,
      // A line of few points may have gaps on both sides of each.
      points: { show: one.values.filter((value) => value !== null).length <= FEW, size: 5, fill: stroke },
      ...(one.dash && { dash: [...one.dash] }),
      ...drawnAs(kind, index, stroke),
    };
    return one.downTo === undefined ? [own] : [own, { ...own, width: 1 }];
  });
  let at = 1;
  for (const one of series) {
    if (one.downTo !== undefined) bands.push({ series: [at, at + 1], fill: `${colour(`--chart-${one.colour}`)}2e` });
    at += one.downTo === undefined ? 1 : 2;
  }
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    // Half of the last time of the axis is right of the drawing.
    padding: [8, 20, 0, 0],
    scales: {
      x: { time: x === undefined },
      y: { range: (_, __, max) => [0, Math.max(line?.at ?? 0, max || 1) * 1.1] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        values: (_, values, __, ___, step) => values.map((value) => timeText(value, step)),
        ...(x && { values: (_, values) => values.map(x), incrs: [1, 2, 5, 10, 20, 50, 100], space: 60 }),
      },
      { ...axis, size: 58, values: (_, values) => values.map(y) },
    ],
    series: [{}, ...drawn],
    bands,
    hooks: {
      draw: [
        ...(line === undefined ? [] : [(plot: uPlot) => drawLine(plot, line.at, colour('--warn'))]),
        ...(mark === undefined ? [] : [(plot: uPlot) => drawMark(plot, mark.at, colour('--accent'))]),
      ],
    },
  };
}

/** Steps and bars begin where their time does. */
function drawnAs(kind: ChartProps['kind'], index: number, fill: string): Partial<uPlot.Series> {
  if (kind === undefined) return {};
  const { stepped, bars } = uPlot.paths;
  const paths = kind === 'steps' ? stepped?.({ align: 1 }) : bars?.({ align: 1, size: [0.8 / (index + 1), 60] });
  return { ...(paths && { paths }), ...(kind === 'bars' && { fill, width: 0, points: { show: false } }) };
}

/** Seconds since the epoch, as exact as the distance of two ticks needs. */
function timeText(value: number, step: number): string {
  return (step >= DAY_SECONDS ? day : hour).format(value * 1_000);
}

const DAY_SECONDS = 86_400;
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

function drawLine(plot: uPlot, value: number, colour: string): void {
  const { left, width } = plot.bbox;
  const top = plot.valToPos(value, 'y', true);
  stroke(plot, colour, [4, 4], [left, top], [left + width, top]);
}

function drawMark(plot: uPlot, at: number, colour: string): void {
  const { top, height } = plot.bbox;
  const left = plot.valToPos(at, 'x', true);
  stroke(plot, colour, [], [left, top], [left, top + height]);
}

type Point = readonly [left: number, top: number];

function stroke({ ctx }: uPlot, colour: string, dash: readonly number[], from: Point, to: Point): void {
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.restore();
}
