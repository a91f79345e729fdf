import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { createToken, type Scope } from '../../src/server/index.ts';
import { routes } from '../../src/server/routes/index.ts';
import { scopes } from '../../src/server/security/scopes.ts';
import { encode } from '../../src/store/http/wire.ts';
import type { Store } from '../../src/store/store.ts';
import { type RemoteVerb, remoteVerbs, rowOf, verbNames } from '../../src/store/verbs.ts';
import { type Served, served } from './served.ts';
import { emptyStore, storeKinds } from './stores.ts';

/* What a token may do is the table of verbs and the list of routes, and nothing else; docs/security.md shows the same. */

const NOBODY = 'nobody';
const callers = [NOBODY, ...scopes] as const;
type Caller = (typeof callers)[number];

const ID = '01990000-0000-7000-8000-000000000001';
const lease = { worker: 'w', leaseMs: 1_000, limit: 1, queues: [] };
const fence = { id: ID, run: 1, worker: 'w' };
const gate = { kind: 'resource', name: 'smtp' } as const;
const worker = { name: null, version: null, mulligan: null, host: 'h', pid: 1, concurrency: 1, queues: [], jobs: [] };
const described = { ...worker, running: 0, leaseMs: 1_000, loopDelayMs: 0, http: null };

/** Of every verb that travels, a call that any store carries out. */
const calls: { readonly [Verb in RemoteVerb]: Parameters<Store[Verb]> } = {
  heartbeat: [[{ ...fence, leaseMs: 1_000 }]],
  report: [[{ gate, report: null }]],
  settle: [[]],
  remember: [fence, 'a', '1'],
  enqueue: [[]],
  writeSchedule: [{ name: 'none', from: 'v1', to: null, jobs: [] }],
  cancel: [[ID]],
  change: [
    {
      id: ID,
      action: 'cancel',
      selection: {},
      order: 'one',
      by: 'me',
      part: 1,
      intervalMs: 0,
      keepAttempts: false,
      canary: 0,
    },
  ],
  hold: [{ queue: 'q' }, null],
  release: [{ queue: 'q' }],
  changeGate: [gate, 'reset', 'me'],
  writeLimits: [[]],
  permit: [{ limit: 'shop', key: '', cost: 1 }],
  writeRetention: [[]],
  prune: [1],
  rollUp: [],
  register: ['w', described],
  expired: [1],
  claimGated: [{ ...lease, resource: 'smtp' }],
  claimLimited: [lease],
  claim: [lease],
  recall: [ID],
  cancelRequested: [[ID]],
  get: [[ID]],
  ended: [[ID], null],
  list: [{ limit: 1 }],
  count: [{}],
  operations: [1],
  runs: [ID],
  logs: [ID, 1],
  ledger: [{ since: 0, limit: 1 }],
  stats: [],
  forecast: [{ rows: 1 }],
  history: [{ from: 0, to: 60_000, stepMs: 60_000 }],
  gates: [{ limit: 1 }],
  gateHistory: [gate, 1],
  queues: [],
  limits: [{ names: ['shop'], limit: 1 }],
  limitKeys: ['shop', { keys: ['a'], limit: 1 }],
  retention: [],
  schedules: [{ limit: 1 }],
  workers: [],
  errorGroups: [{ limit: 1 }],
  errorHistory: [{ from: 0, to: 300_000, stepMs: 300_000 }],
};

interface Guarded extends Served {
  readonly headersOf: (caller: Caller) => Record<string, string>;
}

async function guarded(kind: (typeof storeKinds)[number]): Promise<Guarded> {
  const tokens = new Map(scopes.map((scope) => [scope, createToken(scope, [scope])]));
  const opened = await served({
    target: await emptyStore(kind),
    server: { tokens: [...tokens.values()].map(({ stored }) => stored), chores: false },
  });
  const headersOf = (caller: Caller): Record<string, string> => ({
    'content-type': 'application/json',
    ...(caller !== NOBODY && { authorization: `Bearer ${tokens.get(caller)?.token}` }),
  });
  return { ...opened, headersOf };
}

function mayCall(caller: Caller, wanted: readonly Scope[]): boolean {
  return caller !== NOBODY && (caller === 'admin' || wanted.includes(caller));
}

function refusalOf(caller: Caller): number {
  return caller === NOBODY ? 401 : 403;
}

it.each(storeKinds)(
  'every verb is carried out for the scopes of its row, and refused to all others, on %s',
  async (kind) => {
    const { url, headersOf } = await guarded(kind);
    for (const verb of verbNames) {
      const { scopes: wanted = null } = rowOf(verb);
      for (const caller of callers) {
        const response = await fetch(`${url}/api/v1/store/${verb}`, {
          method: 'POST',
          headers: headersOf(caller),
          body: encode(calls[verb as RemoteVerb] ?? []),
        });
        const expected = wanted === null ? 404 : mayCall(caller, wanted) ? 200 : refusalOf(caller);
        expect([verb, caller, response.status, await response.text()]).toEqual([
          verb,
          caller,
          expected,
          expect.anything(),
        ]);
      }
    }
  },
);

it('every route is refused to all but its scopes', async () => {
  const { url, headersOf } = await guarded('memory');
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  for (const { method, path, scopes: wanted } of routes) {
    for (const caller of callers) {
      const { status, body } = await fetch(`${url}${path.replace(/\{\w+\}/g, ID)}`, {
        method,
        headers: headersOf(caller),
        signal: closing.signal,
        // Nothing that a route would accept: those that get so far are answered with a problem of the body.
        ...(method !== 'GET' && { body: '"nothing"' }),
      });
      await body?.cancel();
      const isRefused = status === refusalOf(caller);
      expect([method, path, caller, isRefused]).toEqual([
        method,
        path,
        caller,
        wanted.length > 0 && !mayCall(caller, wanted),
      ]);
    }
  }
});

it('docs/security.md shows the table of verbs', () => {
  const page = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8');
  const byScopes = Map.groupBy(remoteVerbs, (verb) =>
    rowOf(verb)
      .scopes?.map((scope) => `\`${scope}\``)
      .join(', '),
  );
  for (const [wanted, own] of byScopes)
    expect(page).toContain(`\n| ${wanted} | ${own.map((verb) => `\`${verb}\``).join(', ')} |\n`);
  expect(page.match(/^\| `(read|write|work|admin)`.* \| `.*\|$/gm)).toHaveLength(byScopes.size);
});
