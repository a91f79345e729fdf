import type { Incoming } from '../server/security/guard.ts';
import { type Asset, assets } from './assets.ts';

/*
 * The files of web/, as `npm run build` made them. They name each other by relative addresses, and the page finds the API in the
 * same way, so that the dashboard works behind any path prefix, as long as the address of the page ends with a slash.
 */

const INDEX = 'index.html';

/** Scripts and styles come from this server alone, and nothing is inline; a text that became a script would not run. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const byPath: ReadonlyMap<string, Asset> = new Map(assets.map((asset) => [asset.path, asset]));

export function pages(path: string, incoming: Incoming): Response | null {
  if (incoming.request.method !== 'GET' && incoming.request.method !== 'HEAD') return null;
  const asset = byPath.get(path === '' || path === '/' ? INDEX : path.slice(1));
  if (asset === undefined) return null;
  return asset.path === INDEX ? (withSlash(path, incoming) ?? page(asset, incoming)) : page(asset, incoming);
}

/** `/queue` has to become `/queue/`: relative addresses would begin one level too high. */
function withSlash(path: string, { url, originalUrl }: Incoming): Response | null {
  const asked = originalUrl?.split('?')[0] ?? (path === '' ? url.pathname : '/');
  // Two slashes at the front would name another host.
  if (asked.endsWith('/') || !/^\/[^/\\]/.test(asked)) return null;
  return new Response(null, { status: 308, headers: { location: `${asked}/` } });
}

function page({ type, text, isHashed }: Asset, { request }: Incoming): Response {
  const headers = new Headers({
    'content-type': type,
    'content-security-policy': POLICY,
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
  });
  const body = request.method === 'HEAD' ? null : text;
  if (body === null || !acceptsGzip(request)) return new Response(body, { headers });
  headers.set('content-encoding', 'gzip');
  // Each copy is compressed on its own: a browser asks once per version, and keeps it.
  return new Response(new Blob([body]).stream().pipeThrough(new CompressionStream('gzip')), { headers });
}

function acceptsGzip(request: Request): boolean {
  return /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
}
