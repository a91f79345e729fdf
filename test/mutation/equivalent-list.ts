import { equivalents } from './equivalent.ts';
import type { Mutation } from './workshop.ts';

export class EquivalentList {
  readonly #unused: Set<string> = new Set(
    equivalents.flatMap(({ file, line, changes }) => changes.map((change) => textOf(file, line, change))),
  );

  /** `source`: the line that the mutant is on. */
  has({ file, change }: Mutation, source: string): boolean {
    const entry = equivalents.find(
      (one) => one.file === file && source.startsWith(one.line) && one.changes.includes(change),
    );
    if (entry) this.#unused.delete(textOf(file, entry.line, change));
    return entry !== undefined;
  }

  /** What was never asked for: the sources have changed since it was written down. */
  unused(): Iterable<string> {
    return this.#unused;
  }
}

function textOf(file: string, line: string, change: string): string {
  return `${file}: ${line}: ${change}`;
}
