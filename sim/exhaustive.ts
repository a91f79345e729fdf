import type { Engine } from './engines.ts';
import { endings } from './faulty-store.ts';
import type { Scenario } from './scenario.ts';
import { type Simulated, simulate } from './simulate.ts';
import type { Scripted } from './world.ts';

/** Two workers, three jobs that fail once: small enough to try everything. */
export const smallScope: Scenario = {
  seed: 1,
  workers: 2,
  jobs: 3,
  leaseMs: 1_000,
  concurrency: 2,
  retryShare: 0.2,
  maxRetriesInFlight: null,
  faultsForMs: 4_000,
  probability: { lost: 0, refused: 0, hangs: 0, crash: 0, wakeUpLost: 0 },
  perSecond: { pause: 0, clockStep: 0, storeAway: 0, fullDisk: 0, operator: 0 },
  slowestCallMs: 5,
  names: null,
  oldDeploy: null,
  outages: [],
  schedules: [],
  limits: { limits: [], changesPerSecond: 0 },
  throttled: 0,
};

/** Every call of a worker with every ending, and a crash before and after every call. */
export function* everyTrouble(calls: number): Generator<Scripted> {
  for (let call = 0; call < calls; call++) {
    for (const ending of endings) yield { endingOf: { call, ending } };
    for (const when of ['before', 'after'] as const) yield { crashAt: { call, when } };
  }
}

/** How many calls the workers make when nothing goes wrong. */
export async function callsInHealth(engine: Engine): Promise<number> {
  const { history } = await simulate(smallScope, engine, {});
  const healedAt = history.healedAt as number;
  return history.events.filter(
    (event) => event.kind === 'executed' && event.process.startsWith('worker') && event.at < healedAt,
  ).length;
}

/** Runs them all, or every n-th of them; yields each result. */
export async function* exhaust(engine: Engine, every = 1): AsyncGenerator<Simulated> {
  const all = [...everyTrouble(await callsInHealth(engine))];
  for (const [index, scripted] of all.entries()) {
    if (index % every === 0) yield await simulate(smallScope, engine, scripted);
  }
}
