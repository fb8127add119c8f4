/** `completion`: scripts that complete commands, options and their values in bash, zsh and fish. */

import { Argument, type Command, type Option } from 'commander';

const SCRIPTS: Readonly<Record<string, (commands: readonly CompletionCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** `loadCommands` returns every command with its options; only `completion` loads all of them. */
export function completionCommand(loadCommands: () => Promise<readonly Command[]>): {
  define(command: Command): void;
} {
  return {
    define(command) {
      const shell = new Argument('<shell>', 'shell that the script is for').choices(Object.keys(SCRIPTS));
      command.addArgument(shell).action(async (name: string) => {
        const commands = (await loadCommands()).map(describeCommand);
        process.stdout.write(SCRIPTS[name]?.(commands) ?? '');
      });
    },
  };
}

interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletionOption[];
  /** Words that the first argument may be; undefined: files. */
  readonly words: readonly string[] | undefined;
}

interface CompletionOption {
  /** With the dashes: the short one if there is one, then the long one. */
  readonly names: readonly string[];
  readonly help: string;
  /** What follows it: nothing, one of these words, a file, or any text. */
  readonly value: 'none' | 'file' | 'any' | readonly string[];
}

const HELP: CompletionOption = { names: ['-h', '--help'], help: 'show help', value: 'none' };

/** Hidden options are not offered. */
export function describeCommand(command: Command): CompletionCommand {
  const parts = command.commands;
  const own = [command, ...parts].flatMap(({ options }) => options).filter((option) => !option.hidden);
  // Subcommands may share an option, such as `--output`.
  const options = [...new Map(own.map((option) => [option.long, option])).values()];
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    summary: command.summary() || command.description(),
    options: [...options.map(describeOption), HELP],
    words: parts.length > 0 ? parts.map((part) => part.name()) : argument?.argChoices,
  };
}

const FILE_VALUE = /<(file|dir|folder|path)(\.\.\.)?>/u;

function describeOption(option: Option): CompletionOption {
  const { short, long, description, argChoices, required, optional, flags } = option;
  const names = [short, long].flatMap((name) => name ?? []);
  const value = FILE_VALUE.test(flags) ? 'file' : 'any';
  return { names, help: description, value: argChoices ?? (required || optional ? value : 'none') };
}

// The bash script: `source <(endpoint-syncer completion bash)`.

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

function optionValues({ name, options }: CompletionCommand): string[] {
  return options.flatMap(({ names, value }) => {
    if (value === 'none') return [];
    const words =
      typeof value === 'string' ? '' : `COMPREPLY=($(compgen -W "${value.join(' ')}" -- "$current")); `;
    return [`    ${names.map((option) => `${name}:${option}`).join('|')}) ${words}return ;;`];
  });
}

function commandWords(command: CompletionCommand): string {
  const options = command.options.map(({ names }) => names.at(-1)).join(' ');
  const words = (command.words ?? []).join(' ');
  return `    ${command.name}) if [[ $current == -* ]]; then words="${options}"; else words="${words}"; fi ;;`;
}

// The zsh script: a file `_endpoint-syncer` in a folder of `$fpath`, or `source <(endpoint-syncer completion zsh)`.

export function zshCompletion(commands: readonly CompletionCommand[]): string {
  const list = commands.map(
    ({ name, summary }) => `    ${zshQuote(`${name}:${summary.replaceAll(':', '\\:')}`)}`,
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
  const specs = [...command.options.flatMap(optionSpecs), zshQuote(rest)];
  return `    ${command.name}) _arguments ${specs.map((spec) => `\\\n      ${spec}`).join(' ')} ;;`;
}

const ZSH_VALUES = { none: '', file: ':file:_files', any: ':value: ' } as const;

/** One spec for each spelling, each excluding the other. */
function optionSpecs({ names, help, value }: CompletionOption): string[] {
  const text = help.replaceAll(/[[\]:\\]/gu, '\\$&');
  const values = typeof value === 'string' ? ZSH_VALUES[value] : `:value:(${value.join(' ')})`;
  return names.map((name) => zshQuote(`(${names.join(' ')})${name}[${text}]${values}`));
}

function zshQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

// The fish script: `endpoint-syncer completion fish | source`.

export function fishCompletion(commands: readonly CompletionCommand[]): string {
  return `# fish completion for endpoint-syncer
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf(command: CompletionCommand): string[] {
  const seen = `-n ${fishQuote(`__fish_seen_subcommand_from ${command.name}`)}`;
  const words =
    command.words === undefined
      ? []
      : [`complete -c endpoint-syncer ${seen} -f -a ${fishQuote(command.words.join(' '))}`];
  return [
    `complete -c endpoint-syncer -n __fish_use_subcommand -f -a ${command.name} -d ${fishQuote(command.summary)}`,
    ...command.options.map((option) => `complete -c endpoint-syncer ${seen} ${optionSpec(option)}`),
    ...words,
  ];
}

const FISH_VALUES = { none: '', file: '-r ', any: '-x ' } as const;

function optionSpec({ names, help, value }: CompletionOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const values = typeof value === 'string' ? FISH_VALUES[value] : `-x -a ${fishQuote(value.join(' '))} `;
  return `${flags.join(' ')} ${values}-d ${fishQuote(help)}`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll(/['\\]/gu, '\\$&')}'`;
}
