/*
 * What a JSON text would become, before anything is parsed. JSON.parse reads any depth, but what walks or writes the data
 * afterwards (JSON.stringify, a structured clone between threads) recurses and runs out of stack; and `[[],[],[]]` takes twenty
 * times as much memory as its text.
 */

/** Deeper than any sane data, and shallow enough for all that recurses. */
export const DEEPEST_JSON = 500;

/** More in one request is refused: a million empty objects take 64 MB. */
export const MOST_VALUES = 1_000_000;

/** Values of a text: every object, every list and every member of them. */
export interface JsonShape {
  readonly depth: number;
  readonly values: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Looks at brackets and commas outside of strings. Of a text that is no JSON it says no less than a parser would find. */
export function shapeOf(text: string): JsonShape {
  let level = 0;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        values++;
        if (++level > depth) depth = level;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        level--;
        break;
      case COMMA:
        values++;
    }
  }
  return { depth, values };
}

export function isTooDeep(text: string): boolean {
  // Each level has two brackets.
  return text.length > 2 * DEEPEST_JSON && shapeOf(text).depth > DEEPEST_JSON;
}

/** Where the string ends that begins at `start` with a quote. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
