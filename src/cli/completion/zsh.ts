/** The zsh script: a file `_endpoint-syncer` in a folder of `$fpath`, or `source <(endpoint-syncer completion zsh)`. */

import type { CompletionCommand, CompletionOption, CompletionValue } from './completion-model.ts';

export function zshCompletion(commands: readonly CompletionCommand[]): string {
  const list = commands.map(
    ({ name, summary }) => `    ${quote(`${name}:${summary.replaceAll(':', '\\:')}`)}`,
  );
  return `#compdef endpoint-syncer
# zsh completion for endpoint-syncer
_endpoint-syncer() {
  local -a commands
  commands=(
${list.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${commands.map(commandCase).join('\n')}
  esac
}
if [ "$funcstack[1]" = _endpoint-syncer ]; then _endpoint-syncer "$@"; else compdef _endpoint-syncer endpoint-syncer; fi
`;
}

function commandCase(command: CompletionCommand): string {
  const rest = command.words === undefined ? '*:file:_files' : `1:word:(${command.words.join(' ')})`;
  const specs = [...command.options.flatMap(optionSpecs), quote(rest)];
  return `    ${command.name}) _arguments ${specs.map((spec) => `\\\n      ${spec}`).join(' ')} ;;`;
}

/** One spec for each spelling, each excluding the other. */
function optionSpecs(option: CompletionOption): string[] {
  const names = option.short === undefined ? [option.long] : [option.short, option.long];
  const help = option.help.replaceAll(/[[\]:\\]/gu, '\\$&');
  return names.map((name) => quote(`(${names.join(' ')})${name}[${help}]${valueSpec(option.value)}`));
}

function valueSpec(value: CompletionValue): string {
  switch (value.kind) {
    case 'none':
      return '';
    case 'words':
      return `:value:(${value.words.join(' ')})`;
    case 'file':
      return ':file:_files';
    case 'any':
      return ':value: ';
    default:
      return value satisfies never;
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
