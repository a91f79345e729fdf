/*
 * The Prometheus text format, for the three kinds of metric that are used here. It is written by hand because it sits
 * on the path of every run and in every user's dependency tree; the format itself is a page long.
 */
export type Labels = Readonly<Record<string, string>>;

/** Users choose queue and job names; a bug that makes up names must not fill the memory of a process. */
export const MOST_SERIES = 1_000;
/** The labels whose values users choose; all others have few. */
const openLabels: ReadonlySet<string> = new Set(['queue', 'name', 'gate', 'limit', 'route']);

abstract class Metric<Value> {
  readonly name: string;
  readonly #help: string;
  readonly #kind: string;
  readonly #series: Map<string, Value> = new Map();
  /** Every run counts under the same few label objects: their text is rendered once per object. */
  readonly #known: WeakMap<Labels, Value> = new WeakMap();

  constructor(name: string, help: string, kind: string) {
    this.name = name;
    this.#help = help;
    this.#kind = kind;
  }

  render(): string {
    const lines = [...this.#series].flatMap(([labels, value]) => this.lines(labels, value));
    return `${[`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.#kind}`, ...lines].join('\n')}\n`;
  }

  /** The value of these labels. */
  protected at(labels: Labels): Value {
    let value = this.#known.get(labels);
    if (value === undefined) {
      const key = this.#keyFor(labels);
      value = this.#series.get(key) ?? this.start();
      this.#series.set(key, value);
      this.#known.set(labels, value);
    }
    return value;
  }

  protected abstract start(): Value;

  protected abstract lines(labels: string, value: Value): string[];

  /** The text of these labels, with "other" for the names in it when there are too many series already. */
  #keyFor(labels: Labels): string {
    const key = renderLabels(labels);
    if (this.#series.has(key) || this.#series.size < MOST_SERIES) return key;
    const entries = Object.entries(labels);
    return renderLabels(
      Object.fromEntries(entries.map(([label, value]) => [label, openLabels.has(label) ? 'other' : value])),
    );
  }
}

abstract class Amount extends Metric<{ value: number }> {
  protected start(): { value: number } {
    return { value: 0 };
  }

  protected lines(labels: string, { value }: { value: number }): string[] {
    return [`${this.name}${braced(labels)} ${value}`];
  }
}

export class Counter extends Amount {
  constructor(name: string, help: string) {
    super(name, help, 'counter');
  }

  add(labels: Labels): void {
    this.at(labels).value++;
  }
}

export class Gauge extends Amount {
  constructor(name: string, help: string) {
    super(name, help, 'gauge');
  }

  /** Adds up under labels that were given before: those under "other" stand for many. */
  add(labels: Labels, value: number): void {
    this.at(labels).value += value;
  }
}

/** A total that the store keeps: a counter that is given whole with each scrape. */
export class StoredCounter extends Amount {
  constructor(name: string, help: string) {
    super(name, help, 'counter');
  }

  add(labels: Labels, value: number): void {
    this.at(labels).value += value;
  }
}

interface Distribution {
  readonly counts: number[];
  sum: number;
}

export class Histogram extends Metric<Distribution> {
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, bounds: readonly number[]) {
    super(name, help, 'histogram');
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const series = this.at(labels);
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const bucket = found === -1 ? this.#bounds.length : found;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  protected start(): Distribution {
    return { counts: new Array(this.#bounds.length + 1).fill(0), sum: 0 };
  }

  protected lines(labels: string, { counts, sum }: Distribution): string[] {
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      const bound = index < this.#bounds.length ? String(this.#bounds[index]) : '+Inf';
      return `${this.name}_bucket${braced(labels, `le="${bound}"`)} ${total}`;
    });
    return [...buckets, `${this.name}_sum${braced(labels)} ${sum}`, `${this.name}_count${braced(labels)} ${total}`];
  }
}

/** Labels as they stand in a line; nothing where there are none. */
function braced(...labels: readonly string[]): string {
  const some = labels.filter((text) => text !== '').join(',');
  return some === '' ? '' : `{${some}}`;
}

function renderLabels(labels: Labels): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}="${escapeLabel(value)}"`)
    .join(',');
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
