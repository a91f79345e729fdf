import type { Answer } from './answers.ts';
import { type Operations, operations } from './operations.ts';
import { token } from './token.ts';

/** What a call needs beside its name; parts that an operation does not take are left out. */
type Given<Name extends keyof Operations> = {
  [Part in 'params' | 'query' | 'body' as Operations[Name][Part] extends undefined
    ? never
    : Part]: Operations[Name][Part];
} & { readonly signal?: AbortSignal };

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

const LONGEST_REQUEST_MS = 30_000;

/** Calls the API of the server that the page came from. */
export async function call<Name extends keyof Operations>(name: Name, given: Given<Name>): Promise<Answer<Name>> {
  const [method, path] = operations[name];
  const { params, query, body, signal } = given as {
    params?: Record<string, string>;
    query?: Record<string, unknown>;
    body?: unknown;
    signal?: AbortSignal;
  };
  const filled = path.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(params?.[key])));
  const url = apiUrl(filled);
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') url.searchParams.set(key, String(value));
  }
  const limit = new AbortController();
  // AbortSignal.timeout() would keep the signals of an answered request until its time is over.
  const timer = setTimeout(() => limit.abort(new DOMException('', 'TimeoutError')), LONGEST_REQUEST_MS);
  try {
    const response = await send(url, {
      method,
      headers: { ...authorization(), ...(method !== 'GET' && { 'content-type': 'application/json' }) },
      ...(method !== 'GET' && { body: JSON.stringify(body ?? {}) }),
      signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]),
    });
    return (await response.json()) as Answer<Name>;
  } finally {
    clearTimeout(timer);
  }
}

export function apiUrl(path: string): URL {
  return new URL(path.slice(1), document.baseURI.split('#')[0]);
}

export function authorization(): Record<string, string> {
  const held = token.get();
  return held === null ? {} : { authorization: `Bearer ${held}` };
}

/** Rejects with an ApiError when the server refuses, or cannot be reached. */
async function send(url: URL, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'UNREACHABLE', 'The server does not answer. The page tries again by itself.');
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { code?: string; detail?: string };
  if (response.status === 401) token.refuse();
  throw new ApiError(response.status, problem.code ?? 'UNKNOWN', problem.detail ?? `HTTP ${response.status}`);
}
