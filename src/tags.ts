import { checkList, checkName, isList, shorten, unexpected } from './config.ts';
import { ConfigError } from './errors.ts';
import { toStoredError } from './untrusted/stored-error.ts';

/* Tags: short texts that jobs are found by, such as `endpoint:42`. */

const MOST_TAGS = 16;
const LONGEST_TAG = 100;

/** Chooses the tags of a job from its input. Called once, at enqueue; it must answer at once and must not throw. */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions mixes inputs; `defineJob` gives the function its own.
export type TagsFunction<Input = any> = (input: Input) => readonly string[] | null | undefined;

/** Null for none, so that a job without tags costs nothing. */
export function checkTags(value: unknown, what: string): readonly string[] | null {
  const tags = checkList(value, what, "a list of texts such as ['endpoint:42']", (tag, index) => {
    return checkName(tag, `${what}[${index}]`, LONGEST_TAG);
  });
  const own = [...new Set(tags)];
  if (own.length > MOST_TAGS) throw unexpected(what, `at most ${MOST_TAGS} tags`, own.length, 'Leave some out.');
  return own.length === 0 ? null : own;
}

/** The tags that a definition gives one job, and those that the enqueue adds. */
export function tagsOf(
  own: readonly string[] | TagsFunction | null,
  added: readonly string[] | null,
  parsed: () => unknown,
  jobName: string,
): readonly string[] | null {
  const chosen = typeof own === 'function' ? callTags(own, parsed(), `${jobName}: tags`) : own;
  if (chosen === null || added === null) return chosen ?? added;
  return checkTags([...chosen, ...added], `${jobName}: tags`);
}

function callTags(choose: TagsFunction, input: unknown, what: string): readonly string[] | null {
  let answer: unknown;
  try {
    answer = choose(input);
  } catch (error) {
    const { name, message } = toStoredError(error);
    const thrown = `${name}: ${shorten(message)}`;
    throw new ConfigError(
      `${what}: expected its function to return a list of texts, got an error that it threw: ${thrown}`,
      {
        cause: error,
      },
    );
  }
  if (answer === null || answer === undefined) return null;
  if (!isList(answer)) new Promise((resolve) => resolve(answer)).catch(() => {});
  return checkTags(answer, what);
}
