import { expect } from 'vitest';
import type { Mulligan } from '../../src/index.ts';
import type { WorkerProcess } from '../processes/fleet.ts';
import { type Books, checkLedgers } from './ledger-check.ts';
import type { Load } from './load.ts';

/** What the store says, and what the processes were told. */
export async function expectGoodBooks(
  mulligan: Mulligan,
  { acknowledged, hardy }: Pick<Load, 'acknowledged' | 'hardy'>,
  workers: readonly WorkerProcess[],
): Promise<Books> {
  const books = await checkLedgers(mulligan, { acknowledged });
  const { jobs, ledgers } = books;
  expect(jobs.filter(({ id, state }) => hardy.has(id) && state !== 'completed')).toEqual([]);
  const told = new Set<string>();
  for (const { id, run } of workers.flatMap(({ messages }) => messages.flatMap(({ completed }) => completed ?? []))) {
    expect(told.has(id), `job ${id} was completed twice`).toBe(false);
    told.add(id);
    expect(ledgers.get(id)?.at(-1)).toMatchObject({ run, outcome: 'completed' });
  }
  expect(told.size).toBeGreaterThan(0);
  return books;
}

/** None of them has ended, and none has had anything to complain about that its log does not know. */
export function expectAllUp(workers: readonly WorkerProcess[]): void {
  const ends = workers.map(({ child, stderr }) => [child.exitCode, child.signalCode, stderr()]);
  expect(ends).toEqual(workers.map(() => [null, null, '']));
}
