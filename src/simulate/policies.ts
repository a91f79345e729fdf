import { closest, unexpected } from '../config.ts';
import { validateRetryOptions } from '../retry/options.ts';
import type { RetryOptions } from '../retry/policy.ts';
import { type PresetName, policies as presets } from '../retry/presets.ts';
import { checkBySchema } from './check.ts';
import { type gateKinds, policySchema } from './schema.ts';

export type GateKind = (typeof gateKinds)[number];

/** A way to retry that a simulation tries out. Plain JSON. */
export interface SimulatedPolicy {
  readonly $schema?: string;
  /** For the table and the legend. */
  readonly name: string;
  readonly retry?: RetryOptions;
  /** `resource` by default. */
  readonly gate?: GateKind;
}

const byName: ReadonlyMap<string, SimulatedPolicy> = new Map<string, SimulatedPolicy>([
  ...(Object.keys(presets) as PresetName[]).map(
    (name) => [name, { name, retry: presets[name], gate: 'resource' }] as const,
  ),
  ['no-gate', { name: 'no-gate', retry: presets.standard, gate: 'none' }],
  ['soft-gate', { name: 'soft-gate', retry: presets.standard, gate: 'soft' }],
]);

/** The presets, each behind a gate, and the preset standard without one: `no-gate`, `soft-gate`. */
export const policyNames: readonly string[] = [...byName.keys()];

/** By name, or an object of your own. */
export function readPolicy(given: unknown, what: string): Required<Omit<SimulatedPolicy, '$schema'>> {
  if (typeof given === 'string') {
    const found = byName.get(given);
    if (found !== undefined) return { retry: {}, gate: 'resource', ...found };
    const meant = closest(given, policyNames);
    throw unexpected(
      what,
      `one of ${policyNames.join(', ')}`,
      given,
      meant === null ? undefined : `Did you mean ${meant}?`,
    );
  }
  checkBySchema(given, policySchema, what);
  const { name, retry = {}, gate = 'resource' } = given as SimulatedPolicy;
  validateRetryOptions(retry, `${what}.retry`);
  return { name, retry, gate };
}
