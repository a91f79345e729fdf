import { InputError, type InputIssue } from './errors.ts';

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

/** What a schema made of an input; throws InputError with the schema's own issues. */
export async function validateInput(
  schema: InputSchema | undefined,
  input: unknown,
  jobName: string,
): Promise<unknown> {
  if (schema === undefined) return input;
  const result = await schema['~standard'].validate(input);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(toInputIssue);
  const list = issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
  throw new InputError(`${jobName}: expected an input its schema accepts, but ${list}`, issues);
}

function toInputIssue(issue: SchemaIssue): InputIssue {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part));
  return { message: issue.message, path: path.join('.') };
}
