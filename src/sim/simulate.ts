import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SqliteStore } from '../store/sqlite/store.ts';
import { check, type Violation } from './checker/checker.ts';
import type { History } from './history.ts';
import { randomScenario, type Scenario } from './scenario.ts';
import { type OpenEngine, openMemory, type Scripted, World } from './world.ts';

export const engineNames = ['memory', 'sqlite'] as const;
export type EngineName = (typeof engineNames)[number];

export interface Simulated {
  readonly scenario: Scenario;
  readonly scripted: Scripted | null;
  readonly engine: EngineName;
  readonly history: History;
  readonly violations: readonly Violation[];
}

const POLL_MS = 500;

/** Runs one scenario and checks its history. */
export async function simulate(
  scenario: Scenario,
  engine: EngineName = 'memory',
  scripted: Scripted | null = null,
): Promise<Simulated> {
  const run = async (open: OpenEngine): Promise<Simulated> => {
    const { history, final, ended } = await new World(scenario, scripted).run(open);
    const violations = check(history, final, { leaseMs: scenario.leaseMs, pollMs: POLL_MS, ended });
    return { scenario, scripted, engine, history, violations };
  };
  return engine === 'memory' ? run(openMemory) : withFile(run);
}

/** A real SQLite file, in the simulator's thread and on its clock. */
async function withFile(run: (open: OpenEngine) => Promise<Simulated>): Promise<Simulated> {
  const folder = await mkdtemp(join(tmpdir(), 'mulligan-sim-'));
  try {
    return await run((machine) => SqliteStore.open({ path: join(folder, 'jobs.db'), inline: machine.clock }));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The same seed twice: whatever differs would make a failure impossible to replay. */
export async function simulateTwice(
  seed: number,
  engine: EngineName,
): Promise<Simulated & { readonly replays: boolean }> {
  const first = await simulate(randomScenario(seed), engine);
  const second = await simulate(randomScenario(seed), engine);
  return { ...first, replays: first.history.hash() === second.history.hash() };
}
