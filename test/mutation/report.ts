import { dirname } from 'node:path';
import type { Fate } from './protocol.ts';

export interface Tried {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  /** The line's text, without the spaces around it. */
  readonly source: string;
  readonly change: string;
  readonly fate: Fate;
  /** The test that noticed it, and what it said. */
  readonly test: string | null;
  readonly said: string;
}

function isKilled({ fate }: Tried): boolean {
  return fate === 'killed' || fate === 'timeout';
}

/** The survivors by place, then the score by folder. */
export function printReport(tried: readonly Tried[]): void {
  const survivors = tried.filter((one) => !isKilled(one)).sort((a, b) => a.id - b.id);
  console.log(`\n${survivors.length} survived:`);
  for (const { file, line, change, source, fate } of survivors) {
    console.log(`  ${file}:${line}  ${change}${fate === 'unreached' ? '  (no test gets there)' : ''}\n      ${source}`);
  }
  console.log('');
  for (const [folder, own] of Map.groupBy(tried, ({ file }) => dirname(file))) printScore(folder, own);
  printScore('all', tried);
}

function printScore(what: string, tried: readonly Tried[]): void {
  const killed = tried.filter(isKilled).length;
  const timeouts = tried.filter(({ fate }) => fate === 'timeout').length;
  const score = ((100 * killed) / tried.length).toFixed(1);
  console.log(`${what.padEnd(18)} ${score.padStart(5)}%  ${killed} of ${tried.length} killed, ${timeouts} by timeout`);
}
