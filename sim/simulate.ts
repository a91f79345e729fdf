import { check, type Violation } from './checker/checker.ts';
import { checkInterleaved } from './checker/interleaved.ts';
import { type Engine, memory } from './engines.ts';
import type { History } from './history.ts';
import { randomScenario, type Scenario, withPlainEnqueues } from './scenario.ts';
import { type Scripted, World } from './world.ts';

export interface Simulated {
  readonly scenario: Scenario;
  readonly scripted: Scripted | null;
  readonly engine: string;
  readonly history: History;
  readonly violations: readonly Violation[];
}

const POLL_MS = 500;

/** Runs one scenario and checks its history. */
export async function simulate(
  scenario: Scenario,
  engine: Engine = memory,
  scripted: Scripted | null = null,
): Promise<Simulated> {
  const played = engine.interleaved ? withPlainEnqueues(scenario) : scenario;
  const { history, final, ended } = await engine.run((open) => new World(played, scripted).run(open));
  const checkHistory = engine.interleaved ? checkInterleaved : check;
  const violations = checkHistory(history, final, { leaseMs: scenario.leaseMs, pollMs: POLL_MS, ended });
  return { scenario, scripted, engine: engine.name, history, violations };
}

/** The same seed twice: whatever differs would make a failure impossible to replay. */
export async function simulateTwice(seed: number, engine: Engine): Promise<Simulated & { readonly replays: boolean }> {
  const first = await simulate(randomScenario(seed), engine);
  const second = await simulate(randomScenario(seed), engine);
  return { ...first, replays: first.history.hash() === second.history.hash() };
}
