import { isList, shorten, unexpected } from './config.ts';
import { ConfigError } from './errors.ts';
import { isStoredKey, storableKey } from './storable-key.ts';
import { toStoredError } from './untrusted/stored-error.ts';

/*
 * The resource of a job: the name of the gate it stands behind.
 *
 *   'smtp'                                 one gate for all jobs of the definition (and of others that name it too)
 *   (input) => input.shop                  one gate per key, `JOB/KEY`, with the job's name as their parent
 *   (input) => ['webhook', input.host]     one gate per key, `webhook/KEY`: definitions can share a parent
 *   (input) => null                        none for this job
 *   false                                  none, and no soft gate either: every failure counts
 *
 * The first slash ends the parent, so neither a name nor a parent has one; a key may.
 */

/** What a resource function answers: a key, a parent and a key, or nothing. */
export type ResourceKey = string | readonly [parent: string, key: string] | null | undefined;

/**
 * Chooses the resource from the input of a job, as `run` will get it: after its trip through JSON, and as the schema made it.
 * Called once, at enqueue; it must answer at once and must not throw.
 */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions mixes inputs; `defineJob` gives the function its own.
export type ResourceFunction<Input = any> = (input: Input) => ResourceKey;

const LONGEST_NAME = 200;
const WITH_KEY = "For a gate per key, give a function: resource: (input) => ['webhook', input.host].";

export function checkResource(value: unknown, what: string, hint: string = WITH_KEY): string {
  if (isName(value)) return value;
  const expected = `a text of 1 to ${LONGEST_NAME} characters, none of them a slash or a control character`;
  throw unexpected(what, expected, value, hint);
}

/** The resource of a queue is one name: only a definition knows the input that a key is made of. */
export function checkQueueResource(value: unknown, what: string): string {
  const hint =
    value === false || value === null
      ? 'Leave it out for none; resource: false in a definition turns the gates of its jobs off.'
      : "For a gate per key, give the definitions a function: defineJob({ resource: (input) => ['webhook', input.host] }).";
  return checkResource(value, what, hint);
}

/** The resource that a job carries: a name, or a parent and a key as `resourceOf` makes them. */
export function checkStoredResource(value: unknown, what: string): string {
  if (typeof value === 'string') {
    const [parent, ...key] = value.split('/');
    if (isName(parent) && (key.length === 0 || isStoredResourceKey(key.join('/')))) return value;
  }
  throw unexpected(what, 'the name of a resource, or parent/key', value);
}

function isStoredResourceKey(key: string): boolean {
  return key.trim() !== '' && isStoredKey(key);
}

function isName(value: unknown): value is string {
  const fits = typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_NAME;
  return fits && value.isWellFormed() && !/[\p{Cc}/]/u.test(value);
}

/** The resource of one job of a definition whose resource is a function. Throws a ConfigError that names the job. */
export function resourceOf(choose: ResourceFunction, input: unknown, jobName: string): string | null {
  const what = `${jobName}: resource`;
  const answer = call(choose, input, what);
  if (answer === null || answer === undefined) return null;
  if (typeof answer === 'string') return keyed(parentFromName(jobName, what), answer, what);
  if (isList(answer) && answer.length === 2) {
    const [parent, key] = answer;
    if (!isName(parent)) throw unexpected(`${what}: parent`, 'a text without a slash', parent);
    return keyed(parent, key, what);
  }
  ignoreRejection(answer);
  throw unexpected(what, ANSWERS, answer, AT_ONCE);
}

const ANSWERS = 'its function to return a key, [parent, key] or null';
const AT_ONCE = 'Return it at once, not as a promise.';

function call(choose: ResourceFunction, input: unknown, what: string): unknown {
  try {
    const answer: unknown = choose(input);
    // Read here: a list may be a proxy that throws.
    return isList(answer) ? Array.from({ length: Math.min(answer.length, 3) }, (_, index) => answer[index]) : answer;
  } catch (error) {
    const { name, message } = toStoredError(error);
    const thrown = `${name}: ${shorten(message)}`;
    throw new ConfigError(`${what}: expected ${ANSWERS}, got an error that it threw: ${thrown}`, { cause: error });
  }
}

function parentFromName(jobName: string, what: string): string {
  if (!jobName.includes('/')) return jobName;
  const hint = 'The name of this job has a slash, so it cannot be the parent of a key.';
  throw new ConfigError(`${what}: expected [parent, key], got a key alone. ${hint} Return [parent, key].`);
}

function keyed(parent: string, key: unknown, what: string): string {
  if (typeof key !== 'string' || key.trim() === '') {
    ignoreRejection(key);
    throw unexpected(`${what}: key`, 'a text that is not empty', key, 'Return null for no resource.');
  }
  return `${parent}/${storableKey(key)}`;
}

/** A promise that rejects later would end the process. */
function ignoreRejection(answer: unknown): void {
  new Promise((resolve) => resolve(answer)).catch(() => {});
}
