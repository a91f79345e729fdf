import { checkInteger, checkList, namesOf, readOptions, unexpected } from '../config.ts';
import { seededRandom } from '../seeded-random.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { arrivalsOf } from './arrivals.ts';
import { Dependency } from './dependency.ts';
import { type Figures, figuresOf } from './figures.ts';
import { Fleet } from './fleet.ts';
import { readPolicy, type SimulatedPolicy } from './policies.ts';
import { Recorder, type Series } from './recorder.ts';
import { type ReadScenario, readScenario, type Scenario } from './scenario.ts';

export interface SimulateOptions {
  /** Names (`standard`, `no-gate`) or objects; each is simulated with the same arrivals. Default: `standard`. */
  readonly policies?: readonly (string | SimulatedPolicy)[];
  /** The same seed gives the same figures. Default 1. */
  readonly seed?: number;
  /** Called after each step of time. */
  readonly onProgress?: (progress: Progress) => void;
  /** Stops the simulation when it aborts: the call rejects with its reason. */
  readonly signal?: AbortSignal;
}

export interface Progress {
  readonly policy: string;
  /** Of all policies, 0 to 1. */
  readonly done: number;
}

/** Plain JSON. */
export interface SimulationResult {
  readonly scenario: ReadScenario;
  readonly seed: number;
  /** The width of a step of the series. */
  readonly stepMs: number;
  readonly runs: readonly PolicyRun[];
}

export interface PolicyRun {
  readonly policy: Required<Omit<SimulatedPolicy, '$schema'>>;
  readonly figures: Figures;
  readonly series: Series;
}

const optionNames = namesOf<SimulateOptions>({ policies: true, seed: true, onProgress: true, signal: true });

/** A picture has some hundred points; what comes after the last arrival may be much longer, and is mostly quiet. */
const MOST_STEPS = 400;
const MOST_STEPS_IN_ALL = 4_000;
const stepsMs = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800].map((seconds) => seconds * 1_000);

/** Each purpose has random numbers of its own: one more draw of one must not shift the others. */
const POISON_STREAM = 0x27d4eb2f;
const DEPENDENCY_STREAM = 0x165667b1;

/**
 * Runs the scenario once per policy: the real worker, store, gates and limits, on a virtual clock. It gives the event loop
 * a turn after each event, so that a page stays responsive.
 * @example const { runs } = await simulate(scenarios['outage-10m'], { policies: ['standard', 'no-gate'] })
 */
export async function simulate(scenario: Scenario, options: SimulateOptions = {}): Promise<SimulationResult> {
  const read = readScenario(scenario);
  const given = readOptions(options, optionNames, 'simulate');
  const { onProgress = () => {}, signal } = given;
  const seed = checkInteger(given.seed ?? 1, 'simulate: seed', { min: 0, max: 2 ** 32 - 1 });
  const policies = checkList(given.policies ?? ['standard'], 'simulate: policies', 'a list of policies', (one, index) =>
    readPolicy(one, `simulate: policies[${index}]`),
  );
  checkNames(policies);
  const stepMs = stepOf(read);
  const runs: PolicyRun[] = [];
  for (const policy of policies) {
    const onStep = (done: number): void => {
      signal?.throwIfAborted();
      onProgress({ policy: policy.name, done: (runs.length + done) / policies.length });
    };
    runs.push(await runPolicy(read, policy, { seed, stepMs, onStep }));
  }
  return { scenario: read, seed, stepMs, runs };
}

function checkNames(policies: readonly { readonly name: string }[]): void {
  const names = policies.map(({ name }) => name);
  if (names.length === 0) throw unexpected('simulate: policies', 'at least one policy', names);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw unexpected('simulate: policies', 'policies with different names', twice);
}

function stepOf({ durationMs, drainMs }: ReadScenario): number {
  const fits = (stepMs: number): boolean =>
    durationMs / stepMs <= MOST_STEPS && (durationMs + drainMs) / stepMs <= MOST_STEPS_IN_ALL;
  return stepsMs.find(fits) ?? (stepsMs.at(-1) as number);
}

interface RunSettings {
  readonly seed: number;
  readonly stepMs: number;
  /** With the part that is done, 0 to 1. */
  readonly onStep: (done: number) => void;
}

async function runPolicy(
  scenario: ReadScenario,
  policy: PolicyRun['policy'],
  { seed, stepMs, onStep }: RunSettings,
): Promise<PolicyRun> {
  const clock = new VirtualClock({ seed });
  const elapsedMs = (): number => clock.monotonic();
  const recorder = new Recorder(elapsedMs, stepMs);
  const fleet = await Fleet.start({
    scenario,
    policy,
    clock,
    elapsedMs,
    dependency: new Dependency(scenario.dependency, seededRandom(seed ^ DEPENDENCY_STREAM)),
    poison: seededRandom(seed ^ POISON_STREAM),
    recorder,
  });
  arrive(fleet, clock, arrivalsOf(scenario, seed));
  const { durationMs, drainMs } = scenario;
  while (elapsedMs() < durationMs || (recorder.left > 0 && elapsedMs() < durationMs + drainMs)) {
    await clock.advance(stepMs);
    fleet.check();
    recorder.sample(await fleet.gatePhase());
    onStep(Math.min(1, elapsedMs() / (durationMs + drainMs)));
  }
  onStep(1);
  return { policy, figures: figuresOf(scenario, recorder, stepMs), series: recorder.series() };
}

/** Jobs of one moment are enqueued together, as those of a burst are. */
function arrive(fleet: Fleet, clock: VirtualClock, times: Iterator<number>): void {
  let next = times.next();
  const enqueueDue = (): void => {
    for (; next.done !== true && next.value <= clock.monotonic(); next = times.next()) fleet.enqueue();
    if (next.done !== true) clock.after(next.value - clock.monotonic(), enqueueDue);
  };
  enqueueDue();
}
