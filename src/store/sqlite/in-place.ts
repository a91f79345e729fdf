import { realpathSync, statSync } from 'node:fs';
import { StoreUnavailableError } from '../../errors.ts';

/** The database, its write-ahead log and the log's index. While a connection is open, SQLite replaces none of them. */
const PARTS = ['', '-wal', '-shm'] as const;

interface Part {
  readonly file: string;
  readonly identity: string | null;
}

/**
 * Notices that a file is no longer the one that was opened. SQLite does not: when it is deleted or replaced, open
 * connections go on with the old file, which no path leads to any more, and all that they commit is lost when they close.
 */
export class InPlace {
  readonly #path: string;
  readonly #parts: readonly Part[];

  /** Call when the connection is open: only then all parts exist. */
  constructor(path: string) {
    this.#path = path;
    // SQLite puts the other parts beside the file itself, not beside a link to it.
    const real = realpathSync(path);
    this.#parts = PARTS.map((part) => {
      const file = part === '' ? path : `${real}${part}`;
      return { file, identity: identityOf(file) };
    });
  }

  /** Throws when any part was deleted, moved or replaced. */
  check(): void {
    this.#compare(this.#parts);
  }

  /** The same for the database alone: the last connection to close takes the other parts away. */
  checkDatabase(): void {
    this.#compare(this.#parts.slice(0, 1));
  }

  #compare(parts: readonly Part[]): void {
    for (const { file, identity } of parts) {
      const found = identityOf(file);
      if (found === identity) continue;
      throw new StoreUnavailableError(
        `${this.#path}: expected the files that were opened, but ${file} was ${found === null ? 'deleted or moved' : 'replaced'} ` +
          'while in use; nothing was written. Put it back as it was, or restart this process to go on with what is there now.',
      );
    }
  }
}

function identityOf(file: string): string | null {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}
