import { type LimitKey, limitsText, parseLimits } from '../../limit/limit.ts';

/** A key of a limit, and its text as `limitsText` writes it: what it is looked up by, and what partitions wait for. */
export interface StoredKey extends LimitKey {
  readonly text: string;
}

export function storedKey({ limit, key }: LimitKey): StoredKey {
  return { limit, key, text: limitsText([{ limit, key }]) };
}

const MOST_TEXTS = 10_000;

/** The limits of jobs are stored as text, one for all jobs of a key: each text is parsed once. */
export class LimitTexts {
  readonly #parsed: Map<string, readonly StoredKey[]> = new Map();

  parse(text: string): readonly StoredKey[] {
    let keys = this.#parsed.get(text);
    if (keys === undefined) {
      if (this.#parsed.size === MOST_TEXTS) this.#parsed.clear();
      keys = parseLimits(text).map(storedKey);
      this.#parsed.set(text, keys);
    }
    return keys;
  }
}
