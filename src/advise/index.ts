export type { GroupAdvice, NameAdvice } from './advice.ts';
export { type Advice, type AdviseOptions, advise } from './advise.ts';
export type { Choice } from './figures.ts';
export type { LedgerOutage } from './outage.ts';
export type { Proposal } from './proposals.ts';
export { policiesToTry, scenarioOf } from './scenario.ts';
export type { AttemptRow, RetryCost } from './tally.ts';
export { type Worse, withdraw, worseInReplay } from './verdict.ts';
