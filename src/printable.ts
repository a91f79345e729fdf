/*
 * Producers and handlers write names, payloads and errors; an operator reads them in a terminal. A terminal executes
 * control characters that are printed to it: clear the screen, change the title, hide a line, write from right to left. So
 * everything that is not plainly visible is shown as an escape.
 */

/** Controls (C0, DEL, C1), line separators, lone surrogates, and what is invisible or turns the direction of writing. */
const unsafe =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The text as it can safely be printed, on one line. */
export function printable(text: string): string {
  return text.replace(unsafe, (character) => short[character] ?? escaped(character));
}

function escaped(character: string): string {
  const code = character.codePointAt(0) as number;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}

/** JSON on one line that is as safe to print. It parses to the same value: only the spelling of characters differs. */
export function printableJson(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replace(unsafe, (character) =>
    Array.from({ length: character.length }, (_, unit) => {
      return `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`;
    }).join(''),
  );
}

const doubleWidth =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;
const noWidth = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** How many columns of a terminal a printable text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += noWidth.test(character) ? 0 : doubleWidth.test(character) ? 2 : 1;
  return width;
}

/** No wider than `width`; what was cut off shows as an ellipsis. */
export function shorten(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = Math.max(0, width - 1);
  for (const character of text) {
    left -= widthOf(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Lines no wider than `width`, broken at spaces where there are some. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) <= width) {
      line += ` ${word}`;
      continue;
    }
    if (line !== '') lines.push(line);
    const pieces = chop(word, width);
    lines.push(...pieces.slice(0, -1));
    line = pieces.at(-1) ?? '';
  }
  return [...lines, line];
}

function chop(word: string, width: number): string[] {
  const pieces = [''];
  for (const character of word) {
    const last = pieces.length - 1;
    if (widthOf(`${pieces[last]}${character}`) > Math.max(2, width)) pieces.push(character);
    else pieces[last] += character;
  }
  return pieces;
}
