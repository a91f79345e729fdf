/*
 * The Prometheus text format, for the three kinds of metric that are used here. It is written by hand because it sits
 * on the path of every run and in every user's dependency tree; the format itself is a page long.
 */
export type Labels = Readonly<Record<string, string>>;

/** Queue and job names come from users; a bug that makes up names must not eat the memory of a process. */
export const MOST_SERIES = 1_000;
/** The labels whose values users choose; all others have few. */
const openLabels: ReadonlySet<string> = new Set(['queue', 'name']);

abstract class Metric<Value> {
  readonly name: string;
  readonly #help: string;
  readonly #kind: string;
  protected readonly series: Map<string, Value> = new Map();

  constructor(name: string, help: string, kind: string) {
    this.name = name;
    this.#help = help;
    this.#kind = kind;
  }

  render(): string {
    const lines = [...this.series].flatMap(([labels, value]) => this.lines(labels, value));
    return `${[`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.#kind}`, ...lines].join('\n')}\n`;
  }

  protected abstract lines(labels: string, value: Value): string[];

  /** The text of these labels, with "other" for the names in it when there are too many series already. */
  protected keyFor(labels: Labels): string {
    const key = renderLabels(labels);
    if (this.series.has(key) || this.series.size < MOST_SERIES) return key;
    const entries = Object.entries(labels);
    return renderLabels(
      Object.fromEntries(entries.map(([label, value]) => [label, openLabels.has(label) ? 'other' : value])),
    );
  }
}

export class Counter extends Metric<number> {
  constructor(name: string, help: string) {
    super(name, help, 'counter');
  }

  add(labels: Labels): void {
    const key = this.keyFor(labels);
    this.series.set(key, (this.series.get(key) ?? 0) + 1);
  }

  protected lines(labels: string, value: number): string[] {
    return [`${this.name}{${labels}} ${value}`];
  }
}

export class Gauge extends Metric<number> {
  constructor(name: string, help: string) {
    super(name, help, 'gauge');
  }

  /** Adds up under labels that were given before: those under "other" stand for many. */
  add(labels: Labels, value: number): void {
    const key = this.keyFor(labels);
    this.series.set(key, (this.series.get(key) ?? 0) + value);
  }

  clear(): void {
    this.series.clear();
  }

  protected lines(labels: string, value: number): string[] {
    return [`${this.name}{${labels}} ${value}`];
  }
}

export class Histogram extends Metric<{ counts: number[]; sum: number }> {
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, bounds: readonly number[]) {
    super(name, help, 'histogram');
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const key = this.keyFor(labels);
    let series = this.series.get(key);
    if (series === undefined) {
      series = { counts: new Array(this.#bounds.length + 1).fill(0), sum: 0 };
      this.series.set(key, series);
    }
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const bucket = found === -1 ? this.#bounds.length : found;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  protected lines(labels: string, { counts, sum }: { counts: number[]; sum: number }): string[] {
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      const bound = index < this.#bounds.length ? String(this.#bounds[index]) : '+Inf';
      return `${this.name}_bucket{${labels},le="${bound}"} ${total}`;
    });
    return [...buckets, `${this.name}_sum{${labels}} ${sum}`, `${this.name}_count{${labels}} ${total}`];
  }
}

/** Every run renders the same few label objects; whoever keeps them pays once. */
const rendered = new WeakMap<Labels, string>();

function renderLabels(labels: Labels): string {
  let text = rendered.get(labels);
  if (text === undefined) {
    text = Object.entries(labels)
      .map(([label, value]) => `${label}="${escapeLabel(value)}"`)
      .join(',');
    rendered.set(labels, text);
  }
  return text;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
