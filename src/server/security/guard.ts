import { ProblemError } from '../problem.ts';
import { isAllowed, type Principal, type Scope, scopes } from './scopes.ts';
import type { Tokens } from './tokens.ts';

/*
 * What a request must pass before a route sees it, in this order:
 *
 *   host      its Host header names a host that is served, so that no other name can be pointed at this address
 *   token     none in the URL: addresses end up in logs, histories and Referer headers
 *   caller    a bearer token, or, where there are no tokens, a peer on this machine
 *   origin    a write comes from no other site, and is JSON: a form of another site can send neither
 *   scope     what the token may do
 */

/** Who sends requests without a token, where none are needed. */
const LOCAL = 'local';
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]'];
const tokenParameters = ['token', 'access_token', 'api_key', 'apikey', 'authorization'];
/**
 * Headers that proxies add, and programs do not: those of the standards, those that name the client, and those of the large networks.
 * Headers of tracing are not among them, because libraries in programs send them, too.
 */
const forwarding =
  /^(?:via|(?:x-)?forwarded(?:-.+)?|x-original-.+|cdn-loop|proxy-connection|(?:.+-)?(?:real|client|remote|originating|proxyuser)-?(?:ip|addr)|(?:cf|x-amz-cf|x-arr|x-azure|x-envoy|fly|x-vercel|fastly)-.+)$/;

export interface GuardSettings {
  readonly tokens: Tokens;
  /** Host names that are served beside those of this machine, in lower case, with or without a port. */
  readonly hosts: readonly string[];
}

export interface Incoming {
  readonly request: Request;
  readonly url: URL;
  /** The path that the client asked for, where an application took a part of it off. */
  readonly originalUrl: string | null;
  /** Of the peer; null where it is not known. */
  readonly address: string | null;
  /** Of HTTP: `1.1`; null where it is not known. */
  readonly httpVersion: string | null;
  /** The path of the route that matched, for metrics; null before one has. */
  route: string | null;
}

export class Guard {
  readonly #settings: GuardSettings;

  constructor(settings: GuardSettings) {
    this.#settings = settings;
  }

  checkHost({ request, url }: Incoming): void {
    const host = (request.headers.get('host') ?? url.host).toLowerCase();
    const name = host.replace(/:\d+$/, '');
    if ([...loopbackHosts, ...this.#settings.hosts].some((served) => served === name || served === host)) return;
    throw new ProblemError(421, 'WRONG_HOST', 'Expected the name of a host that this server was told to serve.');
  }

  checkUrl({ url }: Incoming): void {
    const found = [...url.searchParams.keys()].find((name) => tokenParameters.includes(name.toLowerCase()));
    if (found === undefined) return;
    const detail =
      'Expected the token in the header Authorization, got one in the URL, where logs keep it. Replace it.';
    throw new ProblemError(400, 'BAD_REQUEST', detail);
  }

  identify(incoming: Incoming): Principal {
    const { tokens } = this.#settings;
    const given = bearerOf(incoming.request);
    if (tokens.size === 0) return local(incoming);
    const principal = given === null ? null : tokens.find(given);
    if (principal !== null) return principal;
    const detail =
      given === null
        ? 'Expected the header Authorization: Bearer TOKEN, got none.'
        : 'Expected a token that this server knows, got another one.';
    throw new ProblemError(401, 'UNAUTHENTICATED', detail, { headers: { 'www-authenticate': 'Bearer' } });
  }

  /** Of a request that changes something. */
  checkWrite({ request, url }: Incoming): void {
    if (bearerOf(request) === null) refuseOtherSites(request, url);
    const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
    // Without one there must be no body, which is seen when it is read.
    if (type === 'application/json' || type === undefined) return;
    throw notJson();
  }

  checkScope(principal: Principal, wanted: readonly Scope[]): void {
    if (wanted.length === 0 || isAllowed(principal, wanted)) return;
    const detail = `Expected a token with the scope ${wanted.join(' or ')}, got ${[...principal.scopes].join(', ')}.`;
    throw new ProblemError(403, 'FORBIDDEN', detail);
  }
}

export function notJson(): ProblemError {
  return new ProblemError(415, 'NOT_JSON', 'Expected the header Content-Type: application/json.');
}

function bearerOf(request: Request): string | null {
  return /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? null;
}

/**
 * Without tokens, only a program on this machine is served; not one elsewhere that comes through a proxy on it. A proxy that sends
 * HTTP/1.1 and adds no header cannot be told from a program.
 */
function local(incoming: Incoming): Principal {
  const reason = fromElsewhere(incoming);
  if (reason === null) return { name: LOCAL, scopes: new Set(scopes), isLocal: true };
  const detail = `This server has no tokens, so it serves programs on its own machine only, and ${reason}. Start it with a token file.`;
  throw new ProblemError(403, 'FORBIDDEN', detail);
}

/** Why a request may be of another machine; null when nothing says so. */
function fromElsewhere({ request, address, httpVersion }: Incoming): string | null {
  if (address === null || !isLoopback(address)) return 'this request comes from elsewhere';
  const header = [...request.headers.keys()].find((name) => forwarding.test(name));
  if (header !== undefined) return `this request has the header ${header}, which proxies add`;
  return httpVersion === '1.0' ? 'this request is HTTP/1.0, which proxies send' : null;
}

export function isLoopback(address: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\]|::ffff:127(\.\d{1,3}){3})$/i.test(address);
}

/** Browsers name the site that a write comes from; programs name none. */
function refuseOtherSites(request: Request, url: URL): void {
  const site = request.headers.get('sec-fetch-site');
  const origin = request.headers.get('origin');
  const host = request.headers.get('host') ?? url.host;
  const isOwn = origin === null || originHost(origin) === host.toLowerCase();
  if (isOwn && (site === null || site === 'same-origin' || site === 'none')) return;
  throw new ProblemError(403, 'CROSS_SITE', 'Expected a bearer token, or a request from a page of this server.');
}

function originHost(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : null;
}
