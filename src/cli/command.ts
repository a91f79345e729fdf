import { Command, type HelpContext, type Option } from 'commander';
import { closest } from '../config.ts';
import { oursAmong } from '../foreign-options.ts';
import { chooseDatabase, type Database } from './database.ts';
import { type ExitCode, wrongUsage } from './failure.ts';
import type { Output } from './output.ts';

/** What every command is given. */
export interface Shell {
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  /** The database that `--db` or MULLIGAN_DB names. */
  database(): Database;
  /** The exit code of the process; commands raise it when they did only part of what was asked. */
  exitCode: ExitCode;
}

export function makeShell(output: Output, env: NodeJS.ProcessEnv, flag: () => string | undefined): Shell {
  return { output, env, database: () => chooseDatabase(flag(), env), exitCode: 0 };
}

/** For commands that leave a row in the audit. */
export function byOption(command: CliCommand): CliCommand {
  return command.option('--by <who>', 'who orders it, for the audit (default: user@host)');
}

export interface ByFlags {
  readonly by?: string;
}

/** Options of every command that commander does not list among its options. */
export const HELP: readonly string[] = ['-h', '--help'];

/** A command whose error messages are one line each and name the help to read. */
export class CliCommand extends Command {
  override createCommand(name?: string): CliCommand {
    return new CliCommand(name);
  }

  override error(message: string): never {
    const said = message.replace(/^error: /, '').replace(/\n\(Did you mean (.+)\?\)$/, '. Did you mean $1?');
    // `work --job FILE` lacks `--jobs`, but what its user needs to know is which option was misspelt.
    const unknown = this.args.find((arg) => arg.startsWith('-') && !isOption(this, arg));
    const text = said.startsWith('required option') && unknown !== undefined ? `unknown option '${unknown}'` : said;
    throw wrongUsage(`${text}${/[.?]$/.test(text) ? '' : '.'}${this.#meant(text)} See ${this.path} --help.`);
  }

  /** Commander takes the next argument as the value: `--queue --lease 5s` would serve two queues of these names. */
  override addOption(option: Option): this {
    if (option.required) {
      this.on(`option:${option.name()}`, (value: string) => {
        if (isOption(this, value)) this.error(`option '${option.flags}' argument missing, got the option ${value}`);
      });
    }
    return super.addOption(option);
  }

  /** Commander suggests for typing errors; this also finds `--max-attempts` for `--attempts`. */
  #meant(message: string): string {
    const [, typed] = /^unknown option '--([\w-]+)'$/.exec(message) ?? [];
    const known = this.options.flatMap(({ long }) => (long ? [long.slice(2)] : []));
    if (typed === undefined) return '';
    const camel = typed.replace(/-[a-z]/g, (letter) => letter.charAt(1).toUpperCase());
    const ours = oursAmong(camel, known);
    const meant = ours ?? closest(typed, known);
    return meant === null ? '' : ` Did you mean --${meant}?`;
  }

  /** Called by commander when a group of commands is named without one of its members. */
  override help(context?: HelpContext | ((text: string) => string)): never {
    if (typeof context !== 'object' || !context.error) super.help(context as HelpContext);
    const names = this.commands.map((command) => command.name()).filter((name) => name !== 'help');
    throw wrongUsage(`expected ${this.path} ${names.join(' | ')}. See ${this.path} --help.`);
  }

  /** How it is called: `mulligan jobs list`. */
  get path(): string {
    const parent = this.parent as CliCommand | null;
    return parent === null ? this.name() : `${parent.path} ${this.name()}`;
  }
}

/** Whether this is an option here, or one for all commands. */
function isOption(command: Command | null, value: string): boolean {
  if (command === null) return HELP.includes(value);
  const [flag] = value.split('=');
  return command.options.some(({ long, short }) => flag === long || flag === short) || isOption(command.parent, value);
}
