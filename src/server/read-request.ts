import { z } from 'zod';
import { ourNameFor } from '../foreign-options.ts';
import { ProblemError } from './problem.ts';
import { notJson } from './security/guard.ts';

/** Deeper data than this is refused: what reads it would run out of stack. */
const DEEPEST_JSON = 128;
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

/** Looks at brackets outside of texts, before anything is parsed. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfText(text, at);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > DEEPEST_JSON) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}

/** Where the text ends that begins at `start` with a quote. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
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
  const issues = error.issues
    .slice(0, MOST_ISSUES)
    .map((issue) => ({ path: issue.path.join('.'), message: `${issue.message}${ourNames(issue, schema)}` }));
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
