import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fingerprintOf, withoutData } from './fingerprint.ts';
import { framesOf } from './frames.ts';
import { toStoredError } from './stored-error.ts';

const base = { name: 'Error', code: null, status: null, message: 'order 42 is gone', stack: null };

/** Ids as programs make them. */
const ids: readonly fc.Arbitrary<string>[] = [
  fc.uuid(),
  fc.nat().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.stringMatching(/^[0-9a-f]{8,40}$/),
  fc.stringMatching(/^0x[0-9a-f]{1,16}$/),
  fc.stringMatching(/^(cus|ord|evt)_[A-Za-z0-9]{7}[0-9][A-Za-z0-9]{6}$/),
  fc.stringMatching(/^[0-9A-HJKMNP-TV-Z]{10}[0-9][0-9A-HJKMNP-TV-Z]{15}$/),
  fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-01-01') }).map((date) => date.toISOString()),
  fc.stringMatching(/^[a-z]{1,8}([.+_-][a-z]{1,8})?@[a-z]{2,10}\.[a-z]{2,5}$/),
  fc.webUrl(),
  fc.ipV4(),
  fc.ipV4Extended(),
  fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65_535 })).map(([ip, port]) => `${ip}:${port}`),
  fc.stringMatching(/^[a-z]{3,10}-[0-9]{1,3}\.[a-z]{3,8}\.(internal|com|local)$/),
  fc.stringMatching(/^(\/[a-z]{1,8}){2,5}$/),
  fc.stringMatching(/^[A-Z]:\\[a-z]{1,8}\\[a-z]{1,8}\.txt$/),
  fc.stringMatching(/^"[a-z ]{1,30}"$/),
  fc.stringMatching(/^'[a-z ]{1,30}'$/),
];

describe('a fingerprint', () => {
  it.each(ids.map((id, index) => [index, id] as const))(
    'does not depend on the ids in a message (kind %i)',
    (_, id) => {
      fc.assert(
        fc.property(id, id, fc.constantFrom('order', 'user', 'file'), (one, other, what) => {
          const messageWith = (value: string): string => `${what} ${value} could not be found: try again`;
          expect(withoutData(messageWith(one))).toBe(`${what} * could not be found: try again`);
          expect(withoutData(messageWith(other))).toBe(withoutData(messageWith(one)));
        }),
      );
    },
  );

  it('does not depend on how many ids a message lists', () => {
    expect(withoutData('unknown users 1, 2 and 3')).toBe(withoutData('unknown users 77, 81 and 9'));
    expect(withoutData('unknown users 1, 2, 3')).toBe(withoutData('unknown users 1'));
    expect(withoutData('refused {"id":"a1","n":[1,2]}')).toBe(
      withoutData('refused {"id":"b","n":[3],"m":{"x":null}}'.replace('null', '7')),
    );
  });

  it.each([
    ['Cannot read properties of undefined (reading "x")', 'Cannot read properties of undefined (reading *)'],
    ['Unexpected token \'<\', "<!DOCTYPE "... is not valid JSON', 'Unexpected token *... is not valid JSON'],
    ['connect ECONNREFUSED 10.0.0.3:5432', 'connect ECONNREFUSED *'],
    ['getaddrinfo ENOTFOUND payments', 'getaddrinfo ENOTFOUND *'],
    ['webhook to api.acme.co.uk was refused', 'webhook to * was refused'],
    ['webhook to kunde.de was refused', 'webhook to * was refused'],
    ['user.email is required, list.at is not a function', 'user.email is required, list.at is not a function'],
    ['timeout of 5000ms exceeded', 'timeout of * exceeded'],
    ["ENOENT: no such file or directory, open '/tmp/a/b'", 'ENOENT: no such file or directory, open *'],
    [
      'duplicate key value violates unique constraint "users_email_key"',
      'duplicate key value violates unique constraint *',
    ],
    ["it can't be the user's fault, isn't it", "it can't be the user's fault, isn't it"],
    ['tenant=acme region=eu', 'tenant=* region=*'],
    ['read/write and/or n/a', 'read/write and/or n/a'],
    ['getUserByEmailAddress is not a function', 'getUserByEmailAddress is not a function'],
    ['token QwErTyUiOpAsDfGhJk was refused', 'token * was refused'],
    ['two\n  lines', 'two lines'],
    ['', ''],
  ])('reads %j as %j', (message, expected) => {
    expect(withoutData(message)).toBe(expected);
  });

  it('differs when name, code, status, message or frames do', () => {
    const at = (fn: string, file: string): string => `Error: x\n    at ${fn} (/app/src/${file}:1:2)`;
    const all = [
      base,
      { ...base, name: 'TypeError' },
      { ...base, code: 'ECONNREFUSED' },
      { ...base, status: 503 },
      { ...base, status: 502 },
      { ...base, message: 'order 42 is late' },
      { ...base, stack: at('charge', 'billing.ts') },
      { ...base, stack: at('refund', 'billing.ts') },
      { ...base, stack: at('charge', 'cards.ts') },
    ].map(fingerprintOf);
    expect(new Set(all).size).toBe(all.length);
    for (const fingerprint of all) expect(fingerprint).toMatch(/^e1[0-9a-f]{12}$/);
  });

  // Groups of an earlier release must go on: when this fails, the version of the rules has to change.
  it('stays the same from release to release', () => {
    const stack = 'Error: order 42 is gone\n    at Object.charge (/app/src/billing.ts:10:5)';
    expect([fingerprintOf(base), fingerprintOf({ ...base, code: 'E1', status: 404, stack })]).toEqual([
      'e1d44af1c77766',
      'e1d9e6f0d7cb44',
    ]);
  });

  it('has 12 kinds of errors with random ids fall into 12 groups', () => {
    const kinds = [
      (id: string) => new Error(`order ${id} is gone`),
      (id: string) => new Error(`user ${id} is gone`),
      (id: string) => new TypeError(`order ${id} is gone`),
      (id: string) => Object.assign(new Error(`order ${id} is gone`), { code: 'GONE' }),
      (id: string) => Object.assign(new Error(`order ${id} is gone`), { status: 410 }),
      (id: string) => new RangeError(`${id} is out of range`),
      (id: string) => new Error(`connect ECONNREFUSED ${id}:443`),
      (id: string) => new Error(`GET https://api.example.com/v1/users/${id} answered 500`),
      (id: string) => new Error(`duplicate key "${id}"`),
      (id: string) => `${id} was thrown as text`,
      (id: string) => new Error('outer failed', { cause: Object.assign(new Error(id), { code: 'INNER' }) }),
      (id: string) => Object.assign(new Error(`card ${id} declined`), { name: 'CardError' }),
    ];
    const groups = new Set<string | undefined>();
    fc.assert(
      fc.property(fc.oneof(...ids.slice(0, 7)), (id) => {
        for (const kind of kinds) groups.add(toStoredError(kind(id)).fingerprint);
      }),
    );
    expect(groups.size).toBe(kinds.length);
  });

  it('reads no more than the start of a long message', () => {
    const long = `${'word '.repeat(1_000)}end`;
    expect(withoutData(long)).toBe(withoutData(`${'word '.repeat(1_000)}other`));
    expect(withoutData(long).length).toBeLessThanOrEqual(200);
  });

  it('takes no more work for hostile messages than for others', () => {
    const hostile = ['"', "'", "'a", 'a', '* ,', '/', '=', 'a.b:', '.', ' ', 'a@', '.a', '(', 'aA', '\u{1f4a5}', '://'];
    for (const text of hostile) expect(withoutData(text.repeat(50_000)).length).toBeLessThanOrEqual(200);
  });
});

describe('the frames of a stack', () => {
  const stackOf = (...frames: string[]): string => ['Error: x', ...frames.map((frame) => `    at ${frame}`)].join('\n');

  it('are the topmost own ones, without folders, lines, dependencies and parts of Node.js', () => {
    const stack = stackOf(
      'TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)',
      'Client.query (/app/node_modules/pg/lib/client.js:10:2)',
      'async Object.charge (/app/src/billing.ts:10:5)',
      'new Card (file:///app/src/card.ts?v=3:1:2)',
      'Promise.all (index 0)',
      'eval (eval at run (/app/a.js:1:1), <anonymous>:1:1)',
      'async C:\\app\\src\\main.ts:3:4',
      'below (/app/src/below.ts:1:1)',
    );
    expect(framesOf(stack)).toEqual(['charge@billing', 'Card@card', '@main']);
  });

  it('do not depend on where and how the program was built', () => {
    const source = stackOf('charge (/home/me/shop/src/billing.ts:10:5)', 'run (/home/me/shop/src/jobs.ts:1:1)');
    const built = stackOf(
      'Object.charge (file:///srv/dist/billing.js:99:1)',
      'async run (/srv/dist/jobs-3f9a81bc.mjs:1:900)',
    );
    expect(framesOf(built)).toEqual(framesOf(source));
    const windows = stackOf('charge (C:\\shop\\src\\billing.ts:10:5)', 'run (C:\\shop\\src\\jobs.ts:1:1)');
    expect(framesOf(windows)).toEqual(framesOf(source));
  });

  it('count a recursion once, and leave out the worker that calls the handler', () => {
    const worker = new URL('../worker/run.ts', import.meta.url);
    const deep = stackOf(
      ...Array<string>(5).fill('walk (/app/tree.ts:1:1)'),
      `#handle (${worker.pathname}:1:1)`,
      `#handle (${worker}:1:1)`,
    );
    expect(framesOf(deep)).toEqual(['walk@tree']);
    expect(framesOf(null)).toEqual([]);
    expect(framesOf('no frames\n  at all')).toEqual([]);
  });
});
