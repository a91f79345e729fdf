import { inspect } from 'node:util';
import { ConfigError, InputError, MulliganError, PayloadError } from '../errors.ts';
import { printable } from '../printable.ts';
import { scrub } from '../untrusted/scrub.ts';

/** 0: done; 1: it could not be done; 2: the command was called wrongly. */
export type ExitCode = 0 | 1 | 2;
export type FailureCode = 'USAGE' | 'NO_DATABASE' | 'NOT_FOUND' | 'NOT_DONE' | 'JOBS_FILE' | 'TOKEN_FILE';

/** A command that failed, with the message its user reads. */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly exitCode: ExitCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Failure';
    this.code = code;
    this.exitCode = code === 'USAGE' ? 2 : 1;
  }
}

export function wrongUsage(message: string): Failure {
  return new Failure('USAGE', message);
}

export interface FailureReport {
  readonly code: string;
  readonly message: string;
  readonly exitCode: ExitCode;
}

/** One line for anything that was thrown; with a stack trace only when MULLIGAN_DEBUG is set. */
export function reportOf(error: unknown, env: NodeJS.ProcessEnv): FailureReport {
  const described = describeFailure(error);
  // Messages repeat what was typed, and an address may hold a password.
  const report = { ...described, message: scrub(described.message) };
  if (env.MULLIGAN_DEBUG !== '1') return report;
  const trace = scrub(inspect(error)).split('\n').map(printable).join('\n');
  return { ...report, message: `${report.message}\n${trace}` };
}

function describeFailure(error: unknown): FailureReport {
  if (error instanceof Failure)
    return { code: error.code, message: printable(inCommands(error.message)), exitCode: error.exitCode };
  // A command checks only what its user typed.
  if (error instanceof ConfigError) return describeFailure(wrongUsage(inCommands(error.message)));
  if (error instanceof MulliganError) {
    const isAboutInput = error instanceof InputError || error instanceof PayloadError;
    return { code: error.code, message: printable(inCommands(error.message)), exitCode: isAboutInput ? 2 : 1 };
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const message = `unexpected error: ${printable(text)}. Set MULLIGAN_DEBUG=1 to see where.`;
  return { code: 'UNEXPECTED', message, exitCode: 1 };
}

/** A message of the library, which names its calls and options, in the words of the command line. */
export function inCommands(message: string): string {
  return message
    .replace(/^(?:jobs|dead|errors|audit)\.\w+: (?:([a-zA-Z]+)(?=: ))?/, (_, option?: string) =>
      option === undefined ? '' : `--${dashed(option)}`,
    )
    .replace(/\b(jobs|dead|errors|audit)\.(list|runNow|cancel|redrive|stop)\b(?:\('([^']*)'\))?/g, (...found) => {
      const [, group, call, argument] = found as [string, string, string, string | undefined];
      return `mulligan ${group} ${dashed(call)}${argument === undefined ? '' : ` ${argument}`}`;
    });
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
