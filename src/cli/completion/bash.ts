/** The bash script: `source <(endpoint-syncer completion bash)`. */

import type { CompletionCommand, CompletionOption } from './completion-model.ts';

export function bashCompletion(commands: readonly CompletionCommand[]): string {
  return `# bash completion for endpoint-syncer
_endpoint_syncer() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  COMPREPLY=()
  case "$command:$previous" in
${commands.flatMap(optionValues).join('\n')}
  esac
  case "$command" in
    "") words="${[...commands.map((command) => command.name), 'help', '--help'].join(' ')}" ;;
    help) words="${commands.map((command) => command.name).join(' ')}" ;;
${commands.map(commandWords).join('\n')}
  esac
  # Without a match bash completes file names.
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _endpoint_syncer endpoint-syncer
`;
}

function optionValues(command: CompletionCommand): string[] {
  return command.options.flatMap((option) => {
    const names = namesOf(option).map((name) => `${command.name}:${name}`);
    switch (option.value.kind) {
      case 'none':
        return [];
      case 'words':
        return [
          `    ${names.join('|')}) COMPREPLY=($(compgen -W "${option.value.words.join(' ')}" -- "$current")); return ;;`,
        ];
      case 'file':
      case 'any':
        return [`    ${names.join('|')}) return ;;`];
      default:
        return option.value satisfies never;
    }
  });
}

function commandWords(command: CompletionCommand): string {
  const options = command.options.map((option) => option.long).join(' ');
  const words = (command.words ?? []).join(' ');
  return `    ${command.name}) if [[ $current == -* ]]; then words="${options}"; else words="${words}"; fi ;;`;
}

function namesOf(option: CompletionOption): string[] {
  return option.short === undefined ? [option.long] : [option.short, option.long];
}
