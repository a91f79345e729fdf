import type { Command, Option } from 'commander';
import { HELP } from '../command.ts';

/** A command as completion sees it. */
export interface CommandNode {
  /** How it is called, without the program: `jobs list`; '' for the program itself. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly CommandNode[];
  /** Its own options, and those of all commands above it. */
  readonly options: readonly OptionNode[];
}

export interface OptionNode {
  /** As they are typed: `--db`, `-h`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** What comes after it: nothing, a file, or some other word. */
  readonly takes: 'nothing' | 'file' | 'word';
}

const help: OptionNode = { flags: HELP, description: 'print this help', takes: 'nothing' };

export function commandTree(command: Command, path = '', above: readonly OptionNode[] = [help]): CommandNode {
  const options = [...above, ...command.options.map(toOption)];
  const inherited = options.filter(({ flags }) => !flags.includes('--version'));
  return {
    path,
    description: command.description(),
    options,
    commands: command.commands
      .filter((one) => one.name() !== 'help')
      .map((one) => commandTree(one, path === '' ? one.name() : `${path} ${one.name()}`, inherited)),
  };
}

/** All commands, those above first. */
export function allCommands(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(allCommands)];
}

/** What may be typed after a command: the commands under it, then its options; each with what it is for. */
export function wordsAfter({ commands, options }: CommandNode): { readonly word: string; readonly about: string }[] {
  return [
    ...commands.map(({ path, description }) => ({ word: path.split(' ').at(-1) as string, about: description })),
    ...options.flatMap(({ flags, description }) => flags.map((word) => ({ word, about: description }))),
  ];
}

/** Flags of all commands after which a word, or a file, is typed. */
export function flagsThatTake(root: CommandNode, takes: OptionNode['takes']): string[] {
  const options = allCommands(root).flatMap((node) => node.options);
  return [...new Set(options.filter((option) => option.takes === takes).flatMap(({ flags }) => flags))].sort();
}

function toOption({ long, short, description, flags, required, optional }: Option): OptionNode {
  const takes = !required && !optional ? 'nothing' : /<file>/.test(flags) ? 'file' : 'word';
  return { flags: [short, long].flatMap((flag) => flag ?? []), description, takes };
}
