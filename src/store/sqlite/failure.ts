import { MulliganError, StoreBusyError, StoreIncompatibleError, StoreUnavailableError } from '../../errors.ts';

/** SQLite's primary result codes that mean something to us. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

const explanations: Record<number, string> = {
  8: 'the file is read-only; make it and its folder writable',
  10: 'the disk refused; check that it has room, is not read-only and is sound, then the file with `PRAGMA integrity_check`',
  13: 'the disk is full; free some space and the queue goes on',
  14: 'the file cannot be opened; check that its folder exists and is writable',
};

function resultCode(error: unknown): number | null {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : null;
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

/** Pages of the file are not what SQLite wrote. */
export function isDamaged(error: unknown): boolean {
  return resultCode(error) === CORRUPT;
}

/** Turns what node:sqlite throws into one of our classes, by result code. */
export function toStoreError(error: unknown, path: string): MulliganError {
  if (error instanceof MulliganError) return error;
  const code = resultCode(error);
  const said = error instanceof Error ? error.message : String(error);
  if (code === BUSY || code === LOCKED) {
    return new StoreBusyError(`${path}: another process holds the file's lock (${said}); nothing was written`, {
      cause: error,
    });
  }
  if (code === CORRUPT || code === NOT_A_DATABASE) {
    return new StoreIncompatibleError(
      `${path}: expected a Mulligan database, found a file SQLite cannot read (${said}); it was left as it is`,
      { cause: error },
    );
  }
  const advice = code === null ? undefined : explanations[code];
  return new StoreUnavailableError(`${path}: ${said}${advice ? `: ${advice}` : ''}`, { cause: error });
}
