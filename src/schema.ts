import { isList, unexpected } from './config.ts';
import { ConfigError, InputError, type InputIssue, isOwnError } from './errors.ts';
import { toStoredError } from './untrusted/stored-error.ts';
import { read, readList } from './untrusted/thrown.ts';

/** The part of the Standard Schema interface that is used here; zod, valibot, arktype and others implement it. */
export interface InputSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The output of a schema for an input. Throws InputError with the schema's own issues, or what the schema itself threw. */
export async function validateInput(
  schema: InputSchema | undefined,
  input: unknown,
  jobName: string,
): Promise<unknown> {
  if (schema === undefined) return input;
  const answer: unknown = await schema['~standard'].validate(input);
  const issues = readIssues(answer, jobName);
  if (issues === null) return (answer as { value: unknown }).value;
  throw new InputError(`${jobName}: expected an input its schema accepts, but ${summary(issues)}`, issues);
}

/** The same for a producer: when the schema itself throws, this is a ConfigError. A worker classifies what it threw. */
export async function checkInput(schema: InputSchema, input: unknown, jobName: string): Promise<unknown> {
  try {
    return await validateInput(schema, input, jobName);
  } catch (error) {
    if (isOwnError(error)) throw error;
    const { name, message } = toStoredError(error);
    const thrown = `${name}: ${message.slice(0, LONGEST_SHOWN)}`.toWellFormed();
    throw new ConfigError(`${jobName}: expected its schema to answer, but it threw ${thrown}`, { cause: error });
  }
}

/** A list of ten thousand wrong rows has as many issues: the error keeps some of them, and its message shows a few. */
const MOST_ISSUES = 1_000;
const MOST_SHOWN = 10;
const LONGEST_SHOWN = 200;
const DEEPEST_PATH = 100;

/** Null when there are none. A schema is the caller's code: it may return anything, also a value that cannot be read. */
function readIssues(answer: unknown, jobName: string): InputIssue[] | null {
  const issues = read(answer, 'issues') ?? null;
  if (isList(issues)) return readList(issues, MOST_ISSUES).map(toInputIssue);
  if (issues === null && hasValue(answer)) return null;
  throw unexpected(`${jobName}: its schema`, 'an answer of { value } or { issues: [...] }', answer);
}

function hasValue(answer: unknown): boolean {
  try {
    return typeof answer === 'object' && answer !== null && 'value' in answer;
  } catch {
    return false;
  }
}

function toInputIssue(issue: unknown): InputIssue {
  const message = read(issue, 'message');
  const path = readList(read(issue, 'path'), DEEPEST_PATH).map(toKey);
  return { message: typeof message === 'string' ? message : 'it gave no message', path: path.join('.') };
}

function toKey(part: unknown): string {
  const key = typeof part === 'object' ? read(part, 'key') : part;
  return ['string', 'number', 'symbol'].includes(typeof key) ? String(key) : '?';
}

function summary(issues: readonly InputIssue[]): string {
  if (issues.length === 0) return 'it gave no reason';
  const some = issues.slice(0, MOST_SHOWN).map(({ path, message }) => {
    const whole = path ? `${path}: ${message}` : message;
    return whole.length <= LONGEST_SHOWN ? whole : `${whole.slice(0, LONGEST_SHOWN).toWellFormed()}...`;
  });
  const more = issues.length - some.length;
  return `${some.join('; ')}${more === 0 ? '' : `; and ${more} more`}`;
}
