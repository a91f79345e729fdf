import { type ErrorCode, InputError, MulliganError, UnknownNameError } from '../errors.ts';
import { scrub } from '../untrusted/scrub.ts';

/*
 * Every error of the API is a problem document (RFC 9457). `code` is stable: programs branch on it, never on a text.
 */

/** Codes of the API itself, beside those of `ErrorCode`. */
export type ProblemCode =
  | ErrorCode
  | 'BAD_REQUEST'
  | 'WRONG_HOST'
  | 'CROSS_SITE'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_JSON'
  | 'TOO_LARGE'
  | 'TOO_MANY_WAITING'
  | 'TOO_BUSY'
  | 'NO_DEFINITIONS'
  | 'INTERNAL';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  /** What is wrong with the request, field by field. */
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
  /** Names this failure in the log of the server, where the cause is. */
  readonly reference?: string;
}

const titles: Readonly<Record<number, string>> = {
  400: 'The request is not valid',
  401: 'A token is needed',
  403: 'Not allowed',
  404: 'Not found',
  405: 'This method is not allowed here',
  409: 'The lease was lost',
  410: 'The job has ended without a result',
  413: 'The request is too large',
  415: 'The request is not JSON',
  421: 'This host is not served here',
  422: 'The input was refused',
  429: 'Too many requests wait',
  500: 'The server failed',
  503: 'The store cannot be used now',
};

/** Of codes that share their status with another one. */
const titlesOfCodes: Readonly<Partial<Record<ProblemCode, string>>> = {
  NO_DEFINITIONS: 'The server has no handlers',
  CONFLICT: 'Another order is under way',
  TOO_BUSY: 'The server is busy',
};

/** An error that a route answers with. */
export class ProblemError extends Error {
  readonly problem: Problem;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: ProblemCode,
    detail: string,
    extra: Pick<Problem, 'issues' | 'reference'> & { readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    const { headers = {}, ...rest } = extra;
    this.problem = { ...describe(status, code), detail, ...rest };
    this.headers = headers;
  }
}

function describe(status: number, code: ProblemCode): Pick<Problem, 'type' | 'title' | 'status' | 'code'> {
  const type = `urn:mulligan:problem:${code.toLowerCase().replaceAll('_', '-')}`;
  return { type, title: titlesOfCodes[code] ?? titles[status] ?? 'The request failed', status, code };
}

/** What callers may read of an error that the library threw for what they sent. */
const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  CONFIG: 400,
  INPUT: 422,
  PAYLOAD: 422,
  CONFLICT: 409,
  LEASE_LOST: 409,
  JOB_DEAD: 410,
  JOB_CANCELLED: 410,
  JOB_NOT_FOUND: 404,
  RESULT_MISSING: 410,
};

/** The texts of these name files, hosts and databases: callers get another one. */
const storeTexts: Readonly<Partial<Record<ErrorCode, string>>> = {
  CLOSED: 'The server is shutting down. Send the request to another one, or again later.',
  STORE_UNAVAILABLE: 'The store does not answer. Send the same request again later: it is safe to repeat.',
  STORE_BUSY: 'The store is busy. Send the same request again later: it is safe to repeat.',
  STORE_INCOMPATIBLE: 'The store has another version than this server.',
};

/**
 * What is answered to an error. One that was not thrown on purpose says nothing but a reference: its text may hold a path, a
 * query or a secret, so it goes to the log alone.
 */
export function toProblem(error: unknown, report: (error: unknown) => string): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof UnknownNameError) return new ProblemError(404, 'NOT_FOUND', scrub(error.message));
  if (error instanceof MulliganError) {
    const status = statuses[error.code];
    const issues = error instanceof InputError ? { issues: error.issues } : {};
    if (status !== undefined) return new ProblemError(status, error.code, scrub(error.message), issues);
    const text = storeTexts[error.code];
    if (text !== undefined) return new ProblemError(503, error.code, text, { headers: { 'retry-after': '1' } });
  }
  const reference = report(error);
  const detail = `The server could not answer. Its log has the cause, under the reference ${reference}.`;
  return new ProblemError(500, 'INTERNAL', detail, { reference });
}

export function problemResponse({ problem, headers }: ProblemError): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...headers, 'content-type': 'application/problem+json' },
  });
}
