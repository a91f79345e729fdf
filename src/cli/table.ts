import { printable, shorten, widthOf, wrap } from '../printable.ts';
import type { Output, Style } from './output.ts';

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** No more text than this. */
  readonly max?: number;
  /** How it gives way when the table is wider than the terminal. */
  readonly gives?: 'shortened' | 'wrapping';
  /**
   * That it may be left out, and when: while the table does not fit although all others are as narrow as they get, the column
   * with the lowest rank goes first.
   */
  readonly dropRank?: number;
}

/** The table makes a cell's text printable, so that no caller can forget it. */
export type Cell = string | number | { readonly text: string; readonly style?: Style };

const GAP = '  ';
const NARROWEST = 12;

export function tableLines(given: readonly Column[], rows: readonly (readonly Cell[])[], output: Output): string[] {
  const isUncut = output.columns === Number.POSITIVE_INFINITY;
  const titles: Cell[] = given.map(({ title }) => ({ text: title, style: 'dim' }));
  const cells = [titles, ...rows].map((row) =>
    given.map(({ max = Number.POSITIVE_INFINITY }, index) => {
      const cell = row[index] ?? '';
      const { text, style } = typeof cell === 'object' ? cell : { text: String(cell), style: undefined };
      return { text: isUncut ? printable(text) : shorten(printable(text), max), style };
    }),
  );
  const naturalWidths = given.map((_, index) => Math.max(...cells.map((row) => widthOf(row[index]?.text ?? ''))));
  const kept = keptColumns(given, naturalWidths, output.columns);
  const ofKept = <T>(list: readonly T[]): T[] => kept.map((index) => list[index] as T);
  const columns = ofKept(given);
  const all = cells.map(ofKept);
  const widths = fitWidths(columns, ofKept(naturalWidths), output.columns);
  return all.flatMap((row) => rowLines(row, columns, widths, output));
}

interface PlainCell {
  readonly text: string;
  readonly style: Style | undefined;
}

/** A row takes as many lines as the longest of its wrapped cells. */
function rowLines(
  row: readonly PlainCell[],
  columns: readonly Column[],
  widths: readonly number[],
  output: Output,
): string[] {
  const cells = row.map(({ text, style }, index) => {
    const width = widths[index] as number;
    const parts = columns[index]?.gives === 'wrapping' ? wrap(text, width) : [shorten(text, width)];
    return { parts, style, width, align: columns[index]?.align };
  });
  const height = Math.max(...cells.map(({ parts }) => parts.length));
  return Array.from({ length: height }, (_, at) =>
    cells
      .map(({ parts, style, width, align }) => {
        const padded = pad(parts[at] ?? '', width, align);
        return style === undefined || padded.trim() === '' ? padded : output.paint(style, padded);
      })
      .join(GAP)
      .trimEnd(),
  );
}

function pad(text: string, width: number, align: Column['align']): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'right' ? space + text : text + space;
}

/** The indexes of the columns that are shown. */
function keptColumns(columns: readonly Column[], natural: readonly number[], available: number): number[] {
  const least = columns.map(({ gives }, index) => {
    const width = natural[index] as number;
    return gives === undefined ? width : Math.min(width, NARROWEST);
  });
  const rankOf = (index: number): number => columns[index]?.dropRank ?? Number.POSITIVE_INFINITY;
  let kept = columns.map((_, index) => index);
  const dropped = kept
    .filter((index) => rankOf(index) < Number.POSITIVE_INFINITY)
    .sort((a, b) => rankOf(a) - rankOf(b));
  for (const next of dropped) {
    if (totalWidth(kept.map((index) => least[index] as number)) <= available) break;
    kept = kept.filter((index) => index !== next);
  }
  return kept;
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
}

/** Takes from the widest column that gives way, until the table fits or nothing is left to take. */
function fitWidths(columns: readonly Column[], natural: readonly number[], available: number): number[] {
  const widths = [...natural];
  for (let excess = totalWidth(widths) - available; excess > 0; excess--) {
    const widest = widths.reduce((best, width, index) => {
      const gives = columns[index]?.gives !== undefined && width > NARROWEST;
      return gives && (best === -1 || width > (widths[best] as number)) ? index : best;
    }, -1);
    if (widest === -1) break;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

/** Two columns: a label and its value. Values are not cut: a reader of one job wants all of it. */
export function factLines(facts: readonly (readonly [string, string])[], output: Output): string[] {
  const labels = facts.map(([what]) => printable(what));
  const width = Math.max(...labels.map(widthOf));
  return facts.map(
    ([, value], at) => `${output.paint('dim', pad(labels[at] ?? '', width, 'left'))}${GAP}${printable(value)}`,
  );
}
