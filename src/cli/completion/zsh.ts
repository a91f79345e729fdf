import { allCommands, type CommandNode, flagsThatTake, wordsAfter } from './tree.ts';

export function zshScript(root: CommandNode): string {
  const commands = allCommands(root).filter(({ path }) => path !== '');
  const taking = [...flagsThatTake(root, 'file'), ...flagsThatTake(root, 'word')].join('|');
  const cases = allCommands(root).map((node) => {
    const choices = wordsAfter(node).map(({ word, about }) => quoted(`${word.replaceAll(':', '\\:')}:${about}`));
    return `    '${node.path}') choices=(\n      ${choices.join('\n      ')}\n    ) ;;`;
  });
  return `#compdef mulligan
# mulligan completion zsh > a file _mulligan in a folder of $fpath; or: eval "$(mulligan completion zsh)" after compinit
_mulligan() {
  local command='' word
  local -a choices
  case "\${words[CURRENT-1]}" in
    ${flagsThatTake(root, 'file').join('|')}) _files; return ;;
    ${flagsThatTake(root, 'word').join('|')}) return ;;
  esac
  local -i index
  for ((index = 2; index < CURRENT; index++)); do
    case "\${words[index-1]}" in ${taking}) continue ;; esac
    word="\${command:+$command }\${words[index]}"
    case "$word" in
      ${commands.map(({ path }) => `'${path}'`).join('|')}) command="$word" ;;
    esac
  done
  case "$command" in
${cases.join('\n')}
  esac
  _describe 'mulligan' choices
}
if [ "$funcstack[1]" = _mulligan ]; then _mulligan "$@"; else compdef _mulligan mulligan; fi
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
