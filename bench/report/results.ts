import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Results } from '../harness/runner.ts';

const folder = new URL('../results/', import.meta.url);

function file(quick: boolean): URL {
  return new URL(quick ? 'quick.json' : 'full.json', folder);
}

/** What was stored last; each workload is from one run, with its own date and machine. */
export function readResults(quick: boolean): Results {
  const path = file(quick);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : {};
}

/** A run of some workloads replaces those and leaves the others. */
export function writeResults(results: Results, quick: boolean): Results {
  const all = { ...readResults(quick), ...results };
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  mkdirSync(folder, { recursive: true });
  writeFileSync(file(quick), `${JSON.stringify(sorted, null, 2)}\n`);
  return sorted;
}
