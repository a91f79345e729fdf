/** What `mulligan/simulate` exports. Nothing here needs Node.js: it runs in a browser as well. */
export type { Figures } from './figures.ts';
export { type GateKind, policyNames, type SimulatedPolicy } from './policies.ts';
export { type ScenarioName, scenarioNames, scenarios } from './presets.ts';
export type { GatePhase, Series } from './recorder.ts';
export type {
  AnswerKind,
  Arrivals,
  DependencyOptions,
  Outage,
  OutageOptions,
  ReadArrivals,
  ReadDependency,
  ReadScenario,
  Scenario,
  ServiceTime,
} from './scenario.ts';
export { type JsonSchema, policySchema, scenarioSchema } from './schema.ts';
export { type PolicyRun, type Progress, type SimulateOptions, type SimulationResult, simulate } from './simulate.ts';
export { drawSimulation } from './svg/picture.ts';
