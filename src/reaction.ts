import { checkList, checkName, shorten, unexpected } from './config.ts';
import { ConfigError } from './errors.ts';
import type { InputSchema } from './schema.ts';
import { toStoredError } from './untrusted/stored-error.ts';
import { read } from './untrusted/thrown.ts';

/* `onDead: [job, input]`. Definitions and the options of an enqueue have it, so it knows of a definition only what it needs. */

/** Marks definitions. Registered, so that one made by another copy of this package is recognised. */
export const definitionBrand: unique symbol = Symbol.for('mulligan.definition') as never;

/** An object that only looks like a definition was never checked. */
export function hasBrand(value: unknown): boolean {
  return read(value, definitionBrand) === true;
}

/** A definition, as far as the type of its input goes. */
interface Reacting<Input> {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: only the input matters.
  readonly input: InputSchema<Input, any> | undefined;
}

/** Any input, and no function: where the type of the input is not known, a function still makes one. */
export type AnyInput = object | string | number | boolean | null;

/** A job that reacts to the death of another one: its definition or its name, and its input, or what makes the input at enqueue. */
// biome-ignore lint/suspicious/noExplicitAny: what reacts to any job.
export type ReactionTo<Parsed = any, Input = AnyInput> = readonly [
  job: Reacting<Input> | Reacting<unknown> | string,
  input: NoInfer<Input> | ((input: NoInfer<Parsed>, dead: { readonly id: string }) => NoInfer<Input>),
];

/** `expected` names what else may be given. */
export function checkReaction(value: unknown, what: string, expected = '[job, input]'): ReactionTo {
  const members = checkList(value, what, expected, (member) => member);
  if (members.length !== 2) throw unexpected(what, expected, value);
  const [job, input] = members;
  if (hasBrand(job)) return [job as Reacting<AnyInput>, input as ReactionTo[1]];
  if (typeof job !== 'string') throw unexpected(`${what}[0]`, 'a definition made by defineJob, or a job name', job);
  return [checkName(job, `${what}[0]`), input as ReactionTo[1]];
}

/** What the reaction to a death gets. `parsed` gives the input of the job that may die. */
export function reactionInput([, input]: ReactionTo, parsed: () => unknown, id: string, what: string): unknown {
  if (typeof input !== 'function') return input;
  try {
    return input(parsed(), { id });
  } catch (error) {
    const { name, message } = toStoredError(error);
    const thrown = `${name}: ${shorten(message)}`;
    throw new ConfigError(`${what}: expected its function to return an input, got an error that it threw: ${thrown}`, {
      cause: error,
    });
  }
}
