import { expect, it } from 'vitest';
import { ConfigError, InputError, StoreUnavailableError } from '../errors.ts';
import { Failure, reportOf } from './failure.ts';

it.each([
  [new Failure('USAGE', 'wrong'), { code: 'USAGE', message: 'wrong', exitCode: 2 }],
  [new Failure('NOT_FOUND', 'none'), { code: 'NOT_FOUND', message: 'none', exitCode: 1 }],
  [new ConfigError('--x: expected'), { code: 'USAGE', message: '--x: expected', exitCode: 2 }],
  [new InputError('bad input', []), { code: 'INPUT', message: 'bad input', exitCode: 2 }],
  [new StoreUnavailableError('gone'), { code: 'STORE_UNAVAILABLE', message: 'gone', exitCode: 1 }],
])('%s keeps its own message', (error, report) => {
  expect(reportOf(error, {})).toEqual(report);
});

it('describes anything else on one line, without its stack', () => {
  const report = reportOf(new TypeError('x is\nnot a function\u001b[2J'), {});
  expect(report).toMatchObject({ code: 'UNEXPECTED', exitCode: 1 });
  expect(report.message).toContain('TypeError: x is\\nnot a function\\x1b[2J');
  expect(report.message).not.toContain('\n');
  expect(reportOf('a string', {}).message).toContain('a string');
});

it('adds the stack and the causes for MULLIGAN_DEBUG=1', () => {
  const { message } = reportOf(new Failure('JOBS_FILE', 'no', { cause: new Error('because\u001b') }), {
    MULLIGAN_DEBUG: '1',
  });
  expect(message).toMatch(/^no\n/);
  expect(message).toMatch(/because\\x1b[\s\S]*\n +at /);
  expect(message).not.toContain('\u001b');
});
