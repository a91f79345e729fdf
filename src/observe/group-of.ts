import type { StoredError } from '../retry/outcome.ts';

/** Errors that are alike have the same text here: their fingerprint, or where there is none their name and code. */
export function groupOf(error: StoredError | null): string {
  if (error === null) return '-';
  return error.fingerprint ?? `${error.name} ${error.code ?? ''}`.trimEnd();
}
