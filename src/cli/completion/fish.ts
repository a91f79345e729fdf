import { allCommands, type CommandNode, flagsThatTake, type OptionNode } from './tree.ts';

export function fishScript(root: CommandNode): string {
  const paths = allCommands(root).flatMap(({ path }) => (path === '' ? [] : [`'${path}'`]));
  const taking = [...flagsThatTake(root, 'file'), ...flagsThatTake(root, 'word')];
  const lines = allCommands(root).flatMap((node) => {
    const here = `complete -c mulligan -n '__mulligan_at "${node.path}"'`;
    return [
      ...node.commands.map(({ path, description }) => `${here} -a ${path.split(' ').at(-1)} -d ${quoted(description)}`),
      ...node.options.map((option) => `${here} ${flags(option)} -d ${quoted(option.description)}`),
    ];
  });
  return `# mulligan completion fish > ~/.config/fish/completions/mulligan.fish
function __mulligan_at
  set -l command ''
  set -l previous ''
  for word in (commandline -opc)[2..-1]
    set -l longer (string trim "$command $word")
    not contains -- $previous ${taking.join(' ')}; and contains -- $longer ${paths.join(' ')}; and set command $longer
    set previous $word
  end
  test "$command" = "$argv[1]"
end
complete -c mulligan -f
${lines.join('\n')}
`;
}

/** `-r`: something must follow; `-F`: a file. */
function flags({ flags: all, takes }: OptionNode): string {
  const named = all.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  return [...named, ...(takes === 'nothing' ? [] : ['-r']), ...(takes === 'file' ? ['-F'] : [])].join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
