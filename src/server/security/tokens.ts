import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { checkList, checkName, checkOneOf, describe, isPlainObject, readOptions, unexpected } from '../../config.ts';
import { ConfigError } from '../../errors.ts';
import { type Principal, type Scope, scopes } from './scopes.ts';

/** A token as it is kept: its digest, never itself. It is random in 256 bits, so a plain digest cannot be guessed back. */
export interface StoredToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** SHA-256 of the token, in hexadecimal. */
  readonly sha256: string;
}

const TOKEN_BYTES = 32;
const MOST_TOKENS = 10_000;
/** Longer than any token of ours: what is longer is not even digested. */
export const LONGEST_TOKEN = 512;

/** A new token, which is shown once, and what is kept of it. */
export function createToken(name: string, allowed: readonly Scope[]): { token: string; stored: StoredToken } {
  const token = `mulligan_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, stored: readToken({ name, scopes: allowed, sha256: digest(token).toString('hex') }, 'token') };
}

/** One JSON object per line. Empty lines and lines that begin with # are left out. */
export function readTokenFile(path: string): StoredToken[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`expected a token file at ${path} that can be read, got none.`, { cause: error });
  }
  const lines = text.split('\n').map((line, index) => ({ line: line.trim(), what: `${path}: line ${index + 1}` }));
  const tokens = lines
    .filter(({ line }) => line !== '' && !line.startsWith('#'))
    .map(({ line, what }) => readToken(parse(line, what), what));
  if (tokens.length > 0) return tokens;
  throw new ConfigError(`${path}: expected at least one token, got none. Make one: mulligan token create.`);
}

function parse(line: string, what: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Not the line itself: it may be a token that was pasted here by mistake.
    throw new ConfigError(`${what}: expected a JSON object that mulligan token create wrote, got other text.`);
  }
}

export function readTokens(tokens: unknown, what: string): StoredToken[] {
  const read = checkList(tokens, what, 'a list of tokens, as mulligan token create writes them', (token, index) =>
    readToken(token, `${what}[${index}]`),
  );
  if (read.length <= MOST_TOKENS) return read;
  throw unexpected(what, `at most ${MOST_TOKENS} tokens`, read.length);
}

function readToken(token: unknown, what: string): StoredToken {
  if (!isPlainObject(token)) throw unexpected(what, 'an object with name, scopes and sha256', token);
  const given = readOptions(token as Partial<StoredToken>, ['name', 'scopes', 'sha256', 'createdAt'], what);
  const { sha256 } = given;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) {
    // Not shown: it may be the token itself.
    throw new ConfigError(`${what}: expected the SHA-256 of a token in sha256, in hexadecimal, got something else.`);
  }
  const allowed = checkList(given.scopes, `${what}: scopes`, `a list of ${scopes.join(', ')}`, (scope) =>
    checkOneOf(scope, scopes, `${what}: scopes`),
  );
  if (allowed.length === 0) throw new ConfigError(`${what}: expected at least one scope, got ${describe(allowed)}.`);
  return { name: checkName(given.name, `${what}: name`, 60), scopes: allowed, sha256 };
}

/** Knows tokens by their digests. Every lookup compares with all of them, each in constant time. */
export class Tokens {
  readonly #known: readonly { readonly digest: Buffer; readonly principal: Principal }[];

  constructor(stored: readonly StoredToken[]) {
    this.#known = stored.map(({ name, scopes, sha256 }) => ({
      digest: Buffer.from(sha256, 'hex'),
      principal: { name, scopes: new Set(scopes), isLocal: false },
    }));
  }

  get size(): number {
    return this.#known.length;
  }

  find(token: string): Principal | null {
    if (token.length > LONGEST_TOKEN) return null;
    const given = digest(token);
    let found: Principal | null = null;
    for (const { digest, principal } of this.#known) if (timingSafeEqual(digest, given)) found = principal;
    return found;
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
