import { checkOneOf, unexpected } from '../../config.ts';
import type { AnyJobDefinition } from '../../definition.ts';
import { formatDuration } from '../../duration.ts';
import { validateRetryOptions } from '../../retry/options.ts';
import {
  type Backoff,
  type BackoffOptions,
  backoffKinds,
  type Jitter,
  jitterNames,
  type RetryPolicy,
} from '../../retry/policy.ts';
import { type PresetName, policies } from '../../retry/presets.ts';
import { resolvePolicy } from '../../retry/resolve.ts';
import { loadDefinitions } from '../definitions.ts';
import { wrongUsage } from '../failure.ts';
import { namingFlags, readDuration, readInteger, readNumber } from '../flags.ts';

export const presetNames = Object.keys(policies) as PresetName[];
type Kind = Backoff['kind'];

export interface PolicyFlags {
  readonly preset?: string;
  readonly backoff?: string;
  readonly base?: string;
  readonly factor?: string;
  readonly max?: string;
  readonly delays?: string;
  readonly jitter?: string;
  readonly maxAttempts?: string;
  readonly deadline?: string;
  /** A module with definitions, and the name of one of them. */
  readonly jobs?: string;
  readonly name?: string;
}

export interface ChosenPolicy {
  /** The preset, or the definition, that the policy is of. */
  readonly preset: string;
  readonly policy: RetryPolicy;
  readonly definition: AnyJobDefinition | null;
}

/** A preset or the policy of a definition, changed by the flags. */
export async function choosePolicy(flags: PolicyFlags): Promise<ChosenPolicy> {
  const { preset, policy, definition } =
    flags.jobs === undefined ? presetOf(flags) : await definitionOf(flags, flags.jobs);
  const { jitter, maxAttempts, deadline } = flags;
  const changes = {
    backoff: chooseBackoff(flags, policy.backoff),
    ...(jitter === undefined ? {} : { jitter: readJitter(jitter) }),
    ...(maxAttempts === undefined ? {} : { maxAttempts: readInteger(maxAttempts, '--max-attempts') }),
    ...(deadline === undefined ? {} : { deadline: readDuration(deadline, '--deadline') }),
  };
  const checked = namingFlags(/^policy\.(?:backoff\.)?(\w+)/, () => validateRetryOptions(changes, 'policy'));
  return { preset, policy: { ...policy, ...checked }, definition };
}

function presetOf(flags: PolicyFlags): ChosenPolicy {
  if (flags.name !== undefined) throw wrongUsage('--name: expected --jobs FILE with it, the module of the definition.');
  const preset = checkOneOf(flags.preset ?? 'standard', presetNames, '--preset');
  return { preset, policy: resolvePolicy({ definition: policies[preset] }).policy, definition: null };
}

/** The definition's own policy, as a job of it gets it where neither the queue nor the enqueue says otherwise. */
async function definitionOf({ preset, name }: PolicyFlags, file: string): Promise<ChosenPolicy> {
  if (preset !== undefined) throw wrongUsage('--preset: expected either --preset or --jobs, got both.');
  const definitions = await loadDefinitions(file);
  const names = definitions.map((definition) => definition.name);
  if (name === undefined && names.length > 1) {
    throw wrongUsage(`--name: expected which definition of ${file}. Valid options: ${names.join(', ')}.`);
  }
  const chosen = name === undefined ? names[0] : checkOneOf(name, names, '--name');
  const definition = definitions.find((one) => one.name === chosen) as AnyJobDefinition;
  return { preset: definition.name, policy: resolvePolicy({ definition: definition.retry }).policy, definition };
}

function chooseBackoff(flags: PolicyFlags, preset: Backoff): BackoffOptions {
  const { base, factor, max, delays } = flags;
  const kind = chooseKind(flags, preset);
  refuseUnfit(kind, flags);
  if (kind === 'table') return { kind, delays: readDelays(delays ?? '') };
  const baseMs = base === undefined ? baseOf(preset) : readDuration(base, '--base');
  if (kind === 'fixed') return { kind, base: baseMs };
  // As text, so that an error about a preset's own max shows 30s and not 30000.
  const maxText = max ?? ('maxMs' in preset ? formatDuration(preset.maxMs) : undefined);
  const limits = { base: baseMs, ...(maxText === undefined ? {} : { max: maxText as `${number}ms` }) };
  if (kind !== 'exponential') return { kind, ...limits };
  const chosen = factor === undefined ? factorOf(preset) : readNumber(factor, '--factor');
  return { kind, ...limits, ...(chosen === undefined ? {} : { factor: chosen }) };
}

function chooseKind({ backoff, delays }: PolicyFlags, preset: Backoff): Kind {
  if (backoff !== undefined) return checkOneOf(backoff, backoffKinds, '--backoff');
  return delays === undefined ? preset.kind : 'table';
}

const fitting: Readonly<Record<Kind, readonly (keyof PolicyFlags)[]>> = {
  exponential: ['base', 'factor', 'max'],
  linear: ['base', 'max'],
  fibonacci: ['base', 'max'],
  fixed: ['base'],
  table: ['delays'],
};

function refuseUnfit(kind: Kind, flags: PolicyFlags): void {
  for (const flag of ['base', 'factor', 'max', 'delays'] as const) {
    if (flags[flag] === undefined || fitting[kind].includes(flag)) continue;
    const fits = backoffKinds.filter((other) => fitting[other].includes(flag));
    throw wrongUsage(`--${flag}: a ${kind} backoff has none. Leave it out, or use --backoff ${fits.join(' or ')}.`);
  }
  if (kind === 'table' && flags.delays === undefined) {
    throw wrongUsage('--delays: expected the delays of the table. Write for example --delays 1s,5s,1m.');
  }
}

function readDelays(text: string): `${number}ms`[] {
  return text.split(',').map((delay) => `${readDuration(delay.trim(), '--delays')}ms` as const);
}

function baseOf(preset: Backoff): number {
  return 'baseMs' in preset ? preset.baseMs : (preset.delaysMs[0] as number);
}

function factorOf(preset: Backoff): number | undefined {
  return 'factor' in preset ? preset.factor : undefined;
}

function readJitter(text: string): Jitter {
  const [, share] = /^spread[:=](.+)$/.exec(text) ?? [];
  if (share !== undefined) return { spread: readNumber(share, '--jitter spread', { min: 0, max: 1 }) };
  if (text === 'spread') {
    throw unexpected('--jitter', 'spread with its share', text, 'Write spread:0.2 for up to 20 % shorter or longer.');
  }
  return checkOneOf(text, [...jitterNames, 'spread:0.2' as never], '--jitter');
}
