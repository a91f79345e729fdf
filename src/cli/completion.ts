import { checkOneOf } from '../config.ts';
import type { CliCommand, Shell } from './command.ts';
import { bashScript } from './completion/bash.ts';
import { fishScript } from './completion/fish.ts';
import { type CommandNode, commandTree } from './completion/tree.ts';
import { zshScript } from './completion/zsh.ts';

const scripts: Readonly<Record<string, (root: CommandNode) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function addCompletion(program: CliCommand, { output }: Shell): void {
  program
    .command('completion')
    .description('Print a script that completes commands and options in your shell.')
    .argument('<shell>', Object.keys(scripts).join(', '))
    .addHelpText(
      'after',
      `
bash: add  eval "$(mulligan completion bash)"  to ~/.bashrc
zsh:  add  eval "$(mulligan completion zsh)"   to ~/.zshrc, after compinit
fish: mulligan completion fish > ~/.config/fish/completions/mulligan.fish

With --json: { shell, script }.`,
    )
    .action((shell: string) => {
      const write = scripts[checkOneOf(shell, Object.keys(scripts), 'completion: shell')] as (
        root: CommandNode,
      ) => string;
      const script = write(commandTree(program));
      output.answer({ shell, script }, () => [script.trimEnd()]);
    });
}
