import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';

it('writes lines for people', () => {
  const { output, stdout } = fakeOutput();
  output.answer({ a: 1 }, () => ['one', 'two']);
  output.lines([]);
  expect(stdout.written).toBe('one\ntwo\n');
});

it('writes JSON for programs, and nothing else', () => {
  const { output, stdout, stderr } = fakeOutput({ json: true });
  output.answer({ a: '\u009b' }, () => ['not this']);
  output.lines(['nor this']);
  output.raw('nor this');
  output.note('nor this');
  expect(stdout.written).toBe('{"a":"\\u009b"}\n');
  expect(stderr.written).toBe('');
  output.failure({ code: 'USAGE', message: 'wrong', exitCode: 2 });
  expect(stderr.written).toBe('{"error":{"code":"USAGE","message":"wrong"}}\n');
});

it('moves the cursor of a terminal only', () => {
  const [pipe, terminal] = [fakeOutput(), fakeOutput({ terminal: { columns: 80, rows: 24 } })];
  for (const { output } of [pipe, terminal]) output.raw('\u001b[J');
  expect([pipe.stdout.written, terminal.stdout.written]).toEqual(['', '\u001b[J']);
  expect([pipe.output.columns, terminal.output.columns]).toEqual([Number.POSITIVE_INFINITY, 80]);
});

it('says how far something is: in a terminal at once, anywhere else in a line every 10 s', () => {
  let now = 0;
  const [pipe, json] = [false, true].map((isJson) => fakeOutput({ json: isJson, monotonic: () => now }));
  const terminal = fakeOutput({ terminal: { columns: 80, rows: 24 } });
  for (now = 0; now <= 25_000; now += 500) {
    for (const one of [pipe, json, terminal]) one?.output.progress(`${now} ms`);
  }
  expect(pipe?.stderr.written).toBe('10000 ms\n20000 ms\n');
  expect(json?.stderr.written).toBe('{"progress":"10000 ms"}\n{"progress":"20000 ms"}\n');
  expect(terminal.stderr.written).toContain('\r\x1b[K0 ms\r\x1b[K500 ms');
  // What comes next has a time of its own.
  pipe?.output.progress('');
  for (now = 30_000; now < 40_000; now += 500) pipe?.output.progress('next');
  expect(pipe?.stderr.written).not.toContain('next');
});

it('survives a closed pipe', () => {
  const { stdout, stderr } = fakeOutput();
  stdout.emit('error', Object.assign(new Error('broken pipe'), { code: 'EPIPE' }));
  stderr.emit('error', new Error('broken pipe'));
});
