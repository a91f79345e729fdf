import { z } from 'zod';
import { ourNameFor } from '../foreign-options.ts';
import { DEEPEST_JSON, MOST_VALUES, shapeOf } from '../json-shape.ts';
import { type Budgets, type Share, SMALL } from './budget.ts';
import { ProblemError } from './problem.ts';
import { notJson } from './security/guard.ts';

const MOST_ISSUES = 20;
/** One that lists unknown fields has as many as were sent. */
const LONGEST_ISSUE = 500;

export interface ReadOptions {
  readonly maxBytes: number;
  readonly parse: (text: string) => unknown;
  readonly budgets: Budgets;
  /** What the answer will take; null when the request waits first, and takes a share later. */
  readonly answerBytes: number | null;
}

/** The body as JSON, with a share for it and for the answer. None is `{}`: most actions need to be told nothing. */
export async function readJson(
  request: Request,
  { maxBytes, parse, budgets, answerBytes }: ReadOptions,
): Promise<{ readonly share: Share; readonly value: unknown }> {
  const body = await readBody(request, maxBytes, budgets);
  try {
    const text = decodeText(body.bytes);
    if (text !== '' && !request.headers.has('content-type')) throw notJson();
    const { depth, values } = shapeOf(text);
    if (depth > DEEPEST_JSON) throw refused(`Expected JSON of at most ${DEEPEST_JSON} levels, got more.`);
    if (values > MOST_VALUES)
      throw refused(`Expected JSON of at most ${MOST_VALUES} values, got more. Send it in parts.`);
    const share = answerBytes === null ? await budgets.work(0, 0) : await budgets.work(values, answerBytes);
    return { share, value: text === '' ? {} : parsed(text, parse, share) };
  } finally {
    body.share.release();
  }
}

function parsed(text: string, parse: (text: string) => unknown, share: Share): unknown {
  try {
    return parse(text);
  } catch {
    share.release();
    throw refused('Expected a JSON body, got other text.');
  }
}

function refused(detail: string): ProblemError {
  return new ProblemError(400, 'BAD_REQUEST', detail);
}

interface ReadBody {
  readonly bytes: Uint8Array;
  readonly share: Share;
}

async function readBody(request: Request, maxBytes: number, budgets: Budgets): Promise<ReadBody> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  if (!Number.isInteger(announced)) return readParts(request, maxBytes, budgets);
  const share = await budgets.body(announced);
  try {
    // No more can come than was announced.
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
    return { bytes, share };
  } catch (error) {
    share.release();
    throw asRefused(error);
  }
}

/** A body that does not say how long it is. Most are small; one that is not may be as long as it may be. */
async function readParts({ body }: Request, maxBytes: number, budgets: Budgets): Promise<ReadBody> {
  const parts: Uint8Array[] = [];
  let size = 0;
  let share = await budgets.body(SMALL);
  try {
    for await (const part of body ?? []) {
      if (size <= SMALL && size + part.byteLength > SMALL) {
        share.release();
        share = await budgets.body(maxBytes);
      }
      size += part.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      parts.push(part);
    }
    return { bytes: Buffer.concat(parts), share };
  } catch (error) {
    share.release();
    throw asRefused(error);
  }
}

/** The caller hung up, or sent a body that ends early; an answer can hardly reach it. */
function asRefused(error: unknown): ProblemError {
  return error instanceof ProblemError ? error : notWhole();
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw notWhole();
  }
}

function notWhole(): ProblemError {
  return refused('Expected a whole body in UTF-8, got another one.');
}

function tooLarge(maxBytes: number): ProblemError {
  // The rest of the body is not read, so the connection cannot be used for another request.
  const headers = { connection: 'close' };
  return new ProblemError(413, 'TOO_LARGE', `Expected a body of at most ${maxBytes} bytes, got more.`, { headers });
}

/** Query parameters by name; those that are given more than once as lists. */
export function readQuery(parameters: URLSearchParams): Record<string, string | string[]> {
  const names = [...new Set(parameters.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? (values[0] as string) : values];
    }),
  );
}

/** What the schema makes of the value, or a problem that names what is wrong. */
export function check<Value>(schema: z.ZodType<Value> | undefined, value: unknown, what: string): Value {
  const { success, data, error } = (schema ?? nothing).safeParse(value);
  if (success) return data as Value;
  const issues = error.issues.slice(0, MOST_ISSUES).map((issue) => ({
    path: issue.path.join('.'),
    message: `${issue.message}${ourNames(issue, schema)}`.slice(0, LONGEST_ISSUE).toWellFormed(),
  }));
  throw new ProblemError(400, 'BAD_REQUEST', `The ${what} of the request is not valid. See issues.`, { issues });
}

/** For fields that other queues have: what they are called here. */
function ourNames(issue: z.core.$ZodIssue, schema: z.ZodType | undefined): string {
  if (issue.code !== 'unrecognized_keys') return '';
  const known = issue.path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  const ours = issue.keys.flatMap((key) => ourNameFor(key, known) ?? []);
  return ours.length === 0 ? '' : `. ${ours.join(' ')}`;
}

const nothing: z.ZodType = z.strictObject({});
