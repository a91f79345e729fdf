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

it('survives a closed pipe', () => {
  const { stdout, stderr } = fakeOutput();
  stdout.emit('error', Object.assign(new Error('broken pipe'), { code: 'EPIPE' }));
  stderr.emit('error', new Error('broken pipe'));
});
