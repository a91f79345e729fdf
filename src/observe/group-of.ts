import type { StoredError } from '../retry/outcome.ts';

/** Errors that are alike have the same text here: their name and code. */
export function groupOf(error: StoredError | null): string {
  return error === null ? '-' : `${error.name} ${error.code ?? ''}`.trimEnd();
}
