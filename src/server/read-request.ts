import { z } from 'zod';
import { DEEPEST_JSON, isTooDeep } from '../json-shape.ts';
import { ProblemError } from './problem.ts';
import { notJson } from './security/guard.ts';

const MOST_ISSUES = 20;

/** The body as JSON, read no further than `maxBytes`. None is `{}`: most actions need to be told nothing. */
export async function readJson(request: Request, maxBytes: number, parse: (text: string) => unknown): Promise<unknown> {
  const text = await readText(request, maxBytes);
  if (text === '') return {};
  if (!request.headers.has('content-type')) throw notJson();
  if (isTooDeep(text)) {
    throw new ProblemError(400, 'BAD_REQUEST', `Expected JSON of at most ${DEEPEST_JSON} levels, got more.`);
  }
  try {
    return parse(text);
  } catch {
    throw new ProblemError(400, 'BAD_REQUEST', 'Expected a JSON body, got other text.');
  }
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const announced = request.headers.get('content-length');
  if (announced !== null && Number(announced) > maxBytes) throw tooLarge(maxBytes);
  try {
    // No more can come than was announced.
    const body = announced === null ? await readParts(request, maxBytes) : await request.arrayBuffer();
    if (body.byteLength > maxBytes) throw tooLarge(maxBytes);
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    // The caller hung up, or sent a body that ends early; an answer can hardly reach it.
    throw new ProblemError(400, 'BAD_REQUEST', 'Expected a whole body in UTF-8, got another one.');
  }
}

async function readParts({ body }: Request, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    size += part.byteLength;
    parts.push(part);
    if (size > maxBytes) break;
  }
  return Buffer.concat(parts);
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
  const issues = error.issues.slice(0, MOST_ISSUES).map(({ path, message }) => ({ path: path.join('.'), message }));
  throw new ProblemError(400, 'BAD_REQUEST', `The ${what} of the request is not valid. See issues.`, { issues });
}

const nothing: z.ZodType = z.strictObject({});
