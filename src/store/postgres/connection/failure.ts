import {
  ConfigError,
  MulliganError,
  StoreBusyError,
  StoreIncompatibleError,
  StoreUnavailableError,
} from '../../../errors.ts';
import { scrub } from '../../../untrusted/scrub.ts';
import { REPLACED } from '../sql/shared.ts';
import { CONNECTION, ConnectionError, codeOf } from './connection-error.ts';

const WHERE_PASSWORDS_ARE = 'in the URL (write @ as %40, / as %2F, % as %25) or in PGUSER, PGPASSWORD and ~/.pgpass';

/** What to do about an SQLSTATE, or about a class of them: its first two characters. */
const advice: Readonly<Record<string, string>> = {
  '28': 'check the user, and that pg_hba.conf lets it in from here, with or without TLS',
  '28P01': `the user or the password is wrong; both are ${WHERE_PASSWORDS_ARE}`,
  '3D000': 'create the database first, or name another one in the URL',
  '53100': "the server's disk is full; free some space and the queue goes on",
  '53300': 'the server has no connection left; raise max_connections, or put a pooler before it',
  '25006': 'the server only reads (a standby, or a full disk); name the primary in the URL, or all hosts',
};
const BUSY = new Set(['55P03', '57014', '40001', '40P01', REPLACED]);
/** The tables or functions this version expects are not there. */
const MISSING = new Set(['3F000', '42P01', '42883', '42703', '42704']);
/** A value that PostgreSQL cannot hold: a caller's mistake, which no second try mends. */
const UNSTORABLE = new Set(['22021', '22P02', '22P05', '54000']);
/** The role may not do this. */
const FORBIDDEN = '42501';
/** An earlier statement of the transaction had failed; only a caller's own can come to this. */
const ABORTED = '25P02';
/**
 * The server cannot do it now, and may later: connection, authentication, no such database, resources, shutdown, system
 * and internal errors; it only reads; it has ended a transaction that was idle for too long. Everything else that it
 * refuses is a mistake in our statements.
 */
const UNAVAILABLE = /^(08|28|3D|53|57|58|F0|XX|25006|25P03|25P04)/;

/** Two transactions conflicted, and this one was rolled back: it may simply be tried again. */
export function isConflict(error: unknown): boolean {
  const state = codeOf(error);
  return state === '40001' || state === '40P01';
}

/** The tables are not those whose numbers the caller has cached. */
export function isReplaced(error: unknown): boolean {
  return serverSaid(error) === REPLACED;
}

/** One of the jobs is there already. */
export function isDuplicate(error: unknown): boolean {
  return serverSaid(error) === '23505';
}

function serverSaid(error: unknown): string {
  return codeOf(error instanceof MulliganError ? error.cause : error);
}

/** The server is gone, is going, or is no longer the one to write to: another host may be. */
export function isAway(error: unknown): boolean {
  if (error instanceof StoreUnavailableError || error instanceof ConnectionError) return true;
  const code = codeOf(error);
  return /^(08|57P0)/.test(code) || isReadOnly(error) || CONNECTION.test(code);
}

/** A store error that another try may mend: an outage, or a lock that was not given. */
export function isPassing(error: unknown): boolean {
  return error instanceof StoreUnavailableError || error instanceof StoreBusyError;
}

const READ_ONLY = '25006';

export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === READ_ONLY;
}

/** What a pooler answers to the settings that we ask for at the start of a connection, when it does not know them. */
export function isProtocolViolation(error: unknown): boolean {
  return codeOf(error) === '08P01';
}

/** The session is not the one that prepared it, or another client has: a pooler hands it from one to the next. */
export function isOthersStatement(error: unknown): boolean {
  const state = codeOf(error);
  return state === '26000' || state === '42P05';
}

function messageOf(error: unknown): string {
  // A name with several addresses: each was tried, and each has its own complaint.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  if (error instanceof ConnectionError) return messageOf(error.cause);
  return error instanceof Error ? error.message : String(error);
}

/** What to do about it, where we know. */
export function adviceOn(error: unknown): string | undefined {
  if (error instanceof AggregateError) return error.errors.map(adviceOn).find((advised) => advised !== undefined);
  if (error instanceof ConnectionError && error.why === 'no password') {
    return `the server asks for a password, and none was given; one is looked for ${WHERE_PASSWORDS_ARE}`;
  }
  const state = codeOf(error);
  return advice[state] ?? advice[state.slice(0, 2)];
}

/** Without a password in it. */
function reason(error: unknown): string {
  const hint = adviceOn(error);
  return `${scrub(messageOf(error))}${hint ? `: ${hint}` : ''}`;
}

/** Of the hosts of one address, by name, none can be used. */
export function noHost(troubles: ReadonlyMap<string, unknown>, where: string): unknown {
  const errors = [...troubles.values()];
  if (errors.length === 1) return toStoreError(errors[0], where);
  const reasons = [...troubles].map(([host, error]) => `${host}: ${reason(error)}`);
  return new StoreUnavailableError(`${where}: none of the hosts can be used: ${reasons.join('; ')}`, {
    cause: new AggregateError(errors),
  });
}

/** The server says what is forbidden, but not to which role: that is asked for. */
export async function withRole(
  error: unknown,
  where: string,
  ask: (sql: string) => Promise<{ rows: unknown[] }>,
): Promise<unknown> {
  if (codeOf(error) !== FORBIDDEN) return error;
  try {
    const { rows } = await ask('SELECT current_user');
    return forbidden(error, where, `role ${Object.values(rows[0] as object)[0]}`);
  } catch {
    return forbidden(error, where);
  }
}

function forbidden(error: unknown, where: string, who = 'the role of this connection'): StoreIncompatibleError {
  return new StoreIncompatibleError(
    `${where}: ${reason(error)}: ${who} lacks a right; GRANT what docs/postgres.md lists under Permissions, or migrate as the owner. \`mulligan doctor\` names what is missing`,
    { cause: error },
  );
}

/**
 * Turns what `pg` throws into one of our classes, by class and code. What is none of them is a bug, ours or the driver's,
 * and stays as it is. `where` has no password in it.
 */
export function toStoreError(error: unknown, where: string): unknown {
  if (error instanceof MulliganError) return error;
  const state = codeOf(error);
  const text = `${where}: ${reason(error)}`;
  if (state === FORBIDDEN) return forbidden(error, where);
  if (BUSY.has(state)) return new StoreBusyError(`${text}; nothing was written`, { cause: error });
  if (MISSING.has(state)) {
    return new StoreIncompatibleError(`${text}; the schema is not this version's: run \`mulligan migrate\``, {
      cause: error,
    });
  }
  if (state === ABORTED) {
    return new ConfigError(
      'tx: expected a transaction that goes on, but a statement in it had failed before; nothing was written. Roll it back and begin another.',
      { cause: error },
    );
  }
  if (UNSTORABLE.has(state)) return new ConfigError(`${text}; PostgreSQL cannot hold this value`, { cause: error });
  if (isAway(error) || UNAVAILABLE.test(state)) return new StoreUnavailableError(text, { cause: error });
  return error;
}
