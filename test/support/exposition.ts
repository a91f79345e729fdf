/**
 * Reads Prometheus' text format as strictly as its specification: https://prometheus.io/docs/instrumenting/exposition_formats/
 * Throws at the first line that does not fit. Written from the specification, not from our renderer.
 */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly kind: string;
  readonly help: string;
  readonly samples: Sample[];
  readonly known: Set<string>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"`;
const sampleLine = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (\\S+)$`);
const labelPart = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/g;
const suffixes: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };

export function readExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line must end with a line feed');
  const families = new Map<string, Family>();
  let name = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const help = /^# HELP (\S+) (.*)$/.exec(line);
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary|untyped)$/.exec(line);
    if (help) {
      name = help[1] as string;
      if (families.has(name)) throw new Error(`${name} is described twice`);
      families.set(name, { kind: '', help: help[2] as string, samples: [], known: new Set() });
    } else if (type) {
      const family = families.get(name);
      if (type[1] !== name || family === undefined || family.kind !== '') throw new Error(`out of place: ${line}`);
      families.set(name, { ...family, kind: type[2] as string });
    } else {
      readSample(line, name, families.get(name));
    }
  }
  for (const [one, family] of families) if (family.kind === 'histogram') checkHistogram(one, family);
  return families;
}

function readSample(line: string, name: string, family: Family | undefined): void {
  const found = sampleLine.exec(line);
  if (found === null || family === undefined) throw new Error(`not a sample: ${JSON.stringify(line)}`);
  const [, sample = '', labelText = '', value = ''] = found;
  const allowed = (suffixes[family.kind] ?? ['']).map((suffix) => name + suffix);
  if (!allowed.includes(sample)) throw new Error(`${sample} does not belong to ${name}`);
  const pairs = [...labelText.matchAll(labelPart)].map(([, label, text]) => [
    label as string,
    unescaped(text as string),
  ]);
  const labels = Object.fromEntries(pairs) as Record<string, string>;
  if (Object.keys(labels).length !== pairs.length) throw new Error(`a label twice: ${line}`);
  const series = `${sample} ${JSON.stringify(Object.entries(labels).sort())}`;
  if (family.known.has(series)) throw new Error(`a series twice: ${line}`);
  family.known.add(series);
  if (!/^(?:[+-]?Inf|NaN|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.test(value)) throw new Error(`not a number: ${line}`);
  family.samples.push({ name: sample, labels, value: Number(value.replace('Inf', 'Infinity')) });
}

function unescaped(text: string): string {
  return text.replace(/\\(["\\n])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
}

function checkHistogram(name: string, { samples }: Family): void {
  const own = ({ le: _, ...labels }: Readonly<Record<string, string>>): string =>
    JSON.stringify(Object.entries(labels).sort());
  for (const [series, members] of Map.groupBy(samples, ({ labels }) => own(labels))) {
    const buckets = members.filter((member) => member.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number((labels.le as string).replace('Inf', 'Infinity')));
    const counts = buckets.map(({ value }) => value);
    const rising = (numbers: readonly number[]): boolean =>
      numbers.every((one, i) => i === 0 || one >= (numbers[i - 1] as number));
    if (!rising(bounds) || new Set(bounds).size < bounds.length)
      throw new Error(`${series}: bounds do not rise: ${bounds}`);
    if (!rising(counts)) throw new Error(`${series}: buckets are not cumulative: ${counts}`);
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${series}: there is no bucket for +Inf`);
    const total = members.find((member) => member.name === `${name}_count`)?.value;
    if (counts.at(-1) !== total) throw new Error(`${series}: +Inf holds ${counts.at(-1)} of ${total}`);
    if (!members.some((member) => member.name === `${name}_sum`)) throw new Error(`${series}: there is no sum`);
  }
}
