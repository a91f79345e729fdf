import { sha256 } from '../bytes.ts';
import { framesOf } from './frames.ts';

/*
 * The fingerprint of an error: equal for failures of one kind, and different for failures of two. It is made of what is
 * stored of the error, so that it can be computed again, and of nothing that differs between processes, machines or
 * releases: no line numbers, no folders, no dependencies' frames.
 *
 * A message is cut into words, and every word that looks like data becomes `*`: a word with a digit (numbers, ids, UUIDs,
 * times, IP addresses, ports), a URL, an e-mail address, a path, a host name, a value after `=`, anything in quotes. An id
 * of lower-case letters alone cannot be told from a word. Words keep the cost linear: no pattern can backtrack over a long
 * message.
 *
 * The first two characters are the version of these rules. A change of the rules changes it: the same errors then form
 * new groups beside the old ones.
 */
const VERSION = 'e1';
const DIGITS = 12;

/** So much of a message is read, and so much of what the rules leave of it counts. */
const READ = 2_000;
const COUNTS = 200;

export interface Fingerprinted {
  readonly name: string;
  readonly code: string | null;
  readonly status: number | null;
  readonly message: string;
  readonly stack: string | null;
}

export function fingerprintOf({ name, code, status, message, stack }: Fingerprinted): string {
  const parts = [VERSION, name, code ?? '', status ?? '', withoutData(message), ...framesOf(stack)];
  return VERSION + sha256(parts.join('\0')).slice(0, DIGITS);
}

const quoted = /"[^"\n]*"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?<![\p{L}\p{N}])'[^'\n]*'(?![\p{L}\p{N}])/gu;
const url = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"<>]+/gi;
/** Node names the host after these. */
const unreachable = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) [^\s,;]+/g;
const word = /[^\s"'`“”«»()[\]{}<>,;|]+/gu;
/** A list, or data in brackets: how many there are says nothing about the kind. */
const list = /[({[]*\*(?:[\s,;:|=(){}[\]]*\*)+[)}\]]*|[({[]+\*[)}\]]+/g;

/** The message with `*` in place of everything that looks like data. */
export function withoutData(message: string): string {
  return message
    .slice(0, READ)
    .replace(quoted, '*')
    .replace(url, '*')
    .replace(unreachable, '$1 *')
    .replace(word, (text) => maskWord(text))
    .replace(list, '*')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, COUNTS);
}

function maskWord(text: string): string {
  let end = text.length;
  while (end > 0 && '.:!?'.includes(text[end - 1] as string)) end--;
  const core = text.slice(0, end);
  const equals = core.indexOf('=');
  if (equals > 0 && equals < core.length - 1) {
    return `${maskWord(core.slice(0, equals))}=*${text.slice(end)}`;
  }
  return isData(core) ? `*${text.slice(end)}` : text;
}

/**
 * Endings of host names. Those that members of objects and files have as well are left out (`user.id`, `list.at`, `run.sh`, `user.email`): what they
 * name often is the kind of the error.
 */
const HOST_ENDINGS = [
  'com|net|org|edu|gov|int|biz|xyz|io|ai|co|dev|app|cloud|internal|local|localhost|lan|corp|svc|arpa|example|test|invalid',
  'ae|ar|au|be|bg|br|ca|ch|cl|cn|cz|de|dk|ee|es|eu|fi|fr|gr|hk|hr|hu|ie|il|ir|jp|kr|lt|lu|lv|mx|nl|nz|pe|pk|pt|ro|ru|sa|se|sg|si|sk|th|tr|tw|ua|uk|us|vn|za',
];
const TOP_LEVEL = new RegExp(`\\.(?:${HOST_ENDINGS.join('|')})$`, 'i');

function isData(text: string): boolean {
  return (
    /\p{Nd}/u.test(text) ||
    /[@\\]/.test(text) ||
    /^(?:~|\.{1,2})?\/[^/]|\/.*\//.test(text) ||
    TOP_LEVEL.test(text) ||
    /^[a-f]{8,}$/i.test(text) ||
    isMixture(text)
  );
}

/** Random letters change their case every few letters; a camelCase name does so once or twice per word. */
function isMixture(text: string): boolean {
  if (text.length < 16) return false;
  let changes = 0;
  for (let at = 1; at < text.length; at++) {
    if (isUpper(text.charCodeAt(at)) !== isUpper(text.charCodeAt(at - 1))) changes++;
  }
  return changes > text.length * 0.4;
}

function isUpper(code: number): boolean {
  return code >= 65 && code <= 90;
}
