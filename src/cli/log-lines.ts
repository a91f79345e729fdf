import { printable, printableJson } from '../printable.ts';
import type { LogLine, RunLog } from '../run-log.ts';
import type { Output, Style } from './output.ts';
import { iso } from './time.ts';

/** Without --logs, the end of the newest log is enough. */
const SHORT_LINES = 5;

const styles: Readonly<Record<LogLine['level'], Style>> = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' };

/** What runs logged, newest run first. */
export function logLines(logs: readonly RunLog[], output: Output): string[] {
  return logs.flatMap(({ run, lines, dropped }) => [
    '',
    output.paint('dim', `log of run ${run}`),
    ...(dropped === 0
      ? []
      : [output.paint('dim', `  ${dropped} earlier ${dropped === 1 ? 'line is' : 'lines are'} not kept`)]),
    ...lines.map((line) => lineText(line, output)),
  ]);
}

/** The last lines of the newest log, and how to see the rest. */
export function shortLogLines(logs: readonly RunLog[], output: Output): string[] {
  const [newest, ...older] = logs;
  if (newest === undefined) return [];
  const shown = newest.lines.slice(-SHORT_LINES);
  const isAll = older.length === 0 && shown.length === newest.lines.length;
  const rest = isAll ? [] : [output.paint('dim', '  --logs shows all lines of all runs')];
  return [...logLines([{ ...newest, lines: shown, dropped: isAll ? newest.dropped : 0 }], output), ...rest];
}

function lineText({ level, at, message, fields }: LogLine, output: Output): string {
  const more = fields === undefined ? '' : ` ${output.paint('dim', printableJson(fields))}`;
  return `  ${iso(at)} ${output.paint(styles[level], level.padEnd(5))} ${printable(message)}${more}`;
}
