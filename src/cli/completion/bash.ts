import { allCommands, type CommandNode, flagsThatTake, wordsAfter } from './tree.ts';

export function bashScript(root: CommandNode): string {
  const commands = allCommands(root).filter(({ path }) => path !== '');
  const taking = [...flagsThatTake(root, 'file'), ...flagsThatTake(root, 'word')].join('|');
  const cases = allCommands(root).map((node) => {
    const words = wordsAfter(node).map(({ word }) => word);
    return `    '${node.path}') words='${words.join(' ')}' ;;`;
  });
  return `# mulligan completion bash; source it: eval "$(mulligan completion bash)"
_mulligan() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command='' words='' word index
  COMPREPLY=()
  case "$previous" in
    ${flagsThatTake(root, 'file').join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${flagsThatTake(root, 'word').join('|')}) return ;;
  esac
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "\${COMP_WORDS[index-1]}" in ${taking}) continue ;; esac
    word="\${command:+$command }\${COMP_WORDS[index]}"
    case "$word" in
      ${commands.map(({ path }) => `'${path}'`).join('|')}) command="$word" ;;
    esac
  done
  case "$command" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _mulligan mulligan
`;
}
