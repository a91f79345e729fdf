import type { SimulationResult } from '../simulate/index.ts';
import type { NameAdvice } from './advice.ts';
import { triedAs } from './scenario.ts';
import { counted } from './words.ts';

/** A policy of a replay that did worse than the present one, and by what. */
export interface Worse {
  readonly policy: string;
  readonly why: string;
}

export function worseInReplay({ runs: [present, ...others] }: Pick<SimulationResult, 'runs'>): Worse[] {
  if (present === undefined) return [];
  const before = present.figures;
  const instead = (now: number, then: number): string => `${counted(now)} instead of ${counted(then)}`;
  return others
    .filter(({ figures }) => figures.completed < before.completed || figures.dead > before.dead)
    .map(({ policy, figures: { completed, dead } }) => ({
      policy: policy.name,
      why: `${instead(completed, before.completed)} jobs completed in the replay of the outage, and ${instead(dead, before.dead)} died`,
    }));
}

/** Advice in which the proposals that their replay speaks against are marked. */
export function withdraw(advice: NameAdvice, worse: readonly Worse[]): NameAdvice {
  const proposals = advice.proposals.map((one) => {
    const found = worse.find(({ policy }) => policy === triedAs[one.setting]);
    return found === undefined ? one : { ...one, withdrawn: found.why };
  });
  return { ...advice, proposals };
}
