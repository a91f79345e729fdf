import { shorten } from './config.ts';
import type { ReactionTo } from './definition.ts';
import { ConfigError } from './errors.ts';
import { toStoredError } from './untrusted/stored-error.ts';

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
