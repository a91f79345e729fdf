import { MulliganError } from '../../../errors.ts';

/*
 * The errors of `pg` itself ("Connection terminated unexpectedly") have neither a class nor a code, only a text. Their
 * meaning follows from where they come from: from a connection that could not be made, or from one that has ended.
 */

/** A connection could not be made, or has broken. It has a code of its own, as errors of the server and of Node have. */
export class ConnectionError extends Error {
  readonly code = 'ECONNRESET';
  readonly why: 'no password' | 'lost';

  constructor(cause: unknown, why: ConnectionError['why'] = 'lost') {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'ConnectionError';
    this.why = why;
  }
}

/** The driver failed while it read an answer. Sending the statement again would end in the same way. */
export class UnreadableAnswerError extends Error {
  constructor(cause: unknown) {
    super(`the server's answer could not be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = 'UnreadableAnswerError';
  }
}

const SQLSTATE = /^[0-9A-Z]{5}$/;
/** Codes that Node gives to a connection that cannot be made or has broken. */
export const CONNECTION: RegExp =
  /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ENOENT|EACCES)/;

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** Mistakes in a program, ours or another's. They are never taken for a failure of the connection. */
const programmingErrors = [TypeError, RangeError, ReferenceError, SyntaxError];

export function isProgrammingError(error: unknown): boolean {
  return programmingErrors.some((one) => error instanceof one);
}

/** What was thrown where a connection could not be made or has ended. What has a class or a code of its own keeps it. */
export function connectionError(error: unknown): unknown {
  if (error instanceof ConnectionError || error instanceof UnreadableAnswerError) return error;
  if (error instanceof MulliganError || isProgrammingError(error)) return error;
  const code = codeOf(error);
  return SQLSTATE.test(code) || CONNECTION.test(code) ? error : new ConnectionError(error);
}
