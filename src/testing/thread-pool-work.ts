import asyncHooks, { AsyncResource } from 'node:async_hooks';

/**
 * Follows the work that a process has handed to another thread and whose result it has not got yet: what node:crypto, zlib,
 * the DNS resolver and native addons do. `process.getActiveResourcesInfo` shows none of it; async hooks do, when they are
 * fed from `init`, `before` and `destroy`.
 *
 * The hooks report synchronous calls too (`scryptSync` makes the same object as `scrypt`, and no callback ever follows), so
 * this class reads from the object of the request whether a result is awaited:
 * - A request with `ondone` (crypto) or `oncomplete` (DNS) is pending until it is called back.
 * - A zlib stream is pending while it holds the `buffer` of a write, which the synchronous forms never set.
 * - WebCrypto requests and those of native addons show nothing. They count as pending until they are called back, but for
 *   UNCERTAIN_MS at most: an addon may make objects that it never calls back. `pbkdf2Sync` and `generateKeyPairSync` look
 *   the same as their WebCrypto forms, and are told apart by the call stack.
 */
export class ThreadPoolWork {
  readonly #requests: Map<number, Request> = new Map();

  /** For the hook `init`. */
  made(id: number, kind: string | undefined, resource: object, at: number): void {
    if (kind === ZLIB || isRequest(kind) || isOfAddon(kind, resource)) {
      // A strong reference would keep every zlib stream in memory, and with it `destroy` from being called.
      this.#requests.set(id, { kind, resource: new WeakRef(resource), at });
    }
  }

  /** For the hook `before`. A zlib stream is called back once for each write. */
  calledBack(id: number): void {
    if (this.#requests.get(id)?.kind !== ZLIB) this.#requests.delete(id);
  }

  /** For the hook `destroy`. */
  destroyed(id: number): void {
    this.#requests.delete(id);
  }

  clear(): void {
    this.#requests.clear();
  }

  /** Call it in a later turn than `made`: the request gets its callback only after `init`. */
  isUnderWay(now: number): boolean {
    for (const [id, request] of this.#requests) {
      if (isPending(request, now)) return true;
      if (request.kind !== ZLIB) this.#requests.delete(id);
    }
    return false;
  }
}

interface Request {
  readonly kind: string | undefined;
  readonly resource: WeakRef<{ ondone?: unknown; oncomplete?: unknown; buffer?: unknown }>;
  readonly at: number;
}

/** An RSA key of 4,096 bits takes seconds on a loaded machine. */
const UNCERTAIN_MS = 5_000;
const ZLIB = 'ZLIB';
/** WebCrypto does not use these, so that one without a callback is synchronous. Handlers make ids with `randomBytes`. */
const withCallbackOnly: ReadonlySet<string> = new Set(['RANDOMBYTESREQUEST', 'SCRYPTREQUEST', 'QUERYWRAP']);
/** What Node itself makes in JavaScript. */
const ofNode: ReadonlySet<string> = new Set(['PROMISE', 'Timeout', 'Immediate', 'TickObject', 'Microtask']);
// Runtimes other than Node may not have it.
const providers: object = asyncHooks.asyncWrapProviders ?? {};

function isRequest(kind: string | undefined): boolean {
  if (kind === 'QUERYWRAP') return true;
  if (!kind?.endsWith('REQUEST') || kind === 'HTTPCLIENTREQUEST') return false;
  return withCallbackOnly.has(kind) || !isCalledSynchronously();
}

function isCalledSynchronously(): boolean {
  return /Sync \(node:internal\/crypto/.test(new Error('for its stack').stack ?? '');
}

/** An addon may give no kind at all (napi-rs does not). */
function isOfAddon(kind: string | undefined, resource: object): boolean {
  if (kind !== undefined && (ofNode.has(kind) || kind in providers)) return false;
  return !(resource instanceof AsyncResource);
}

function isPending({ kind, resource, at }: Request, now: number): boolean {
  const request = resource.deref();
  if (request === undefined) return false;
  if (kind === ZLIB) return request.buffer != null;
  if (typeof (request.ondone ?? request.oncomplete) === 'function') return true;
  return !withCallbackOnly.has(kind ?? '') && now - at < UNCERTAIN_MS;
}
