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

// Which words can follow on a command line, derived from the commander definitions.

interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletionOption[];
  /** Words that the first argument may be; undefined: files. */
  readonly words: readonly string[] | undefined;
}

interface CompletionOption {
  /** With the two dashes. */
  readonly long: string;
  readonly short: string | undefined;
  readonly help: string;
  readonly value: CompletionValue;
}

type CompletionValue =
  | { readonly kind: 'none' }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'any' };

/** Hidden options are not offered. */
export function describeCommand(command: Command): CompletionCommand {
  const parts = command.commands;
  const own = [command, ...parts].flatMap(({ options }) => options).filter((option) => !option.hidden);
  const help: CompletionOption = { long: '--help', short: '-h', help: 'show help', value: { kind: 'none' } };
  return {
    name: command.name(),
    summary: command.summary() || command.description(),
    options: [...uniqueOptions(own).map(describeOption), help],
    words: parts.length > 0 ? parts.map((part) => part.name()) : wordsOf(command.registeredArguments[0]),
  };
}

/** Subcommands may share an option, such as `--output`. */
function uniqueOptions(options: readonly Option[]): readonly Option[] {
  return [...new Map(options.map((option) => [option.long ?? '', option])).values()];
}

function describeOption(option: Option): CompletionOption {
  return {
    long: option.long ?? '',
    short: option.short,
    help: option.description,
    value: valueOf(option),
  };
}

const FILE_VALUE = /<(file|dir|folder|path)(\.\.\.)?>/u;

function valueOf(option: Option): CompletionValue {
  if (option.argChoices !== undefined) return { kind: 'words', words: option.argChoices };
  if (!option.required && !option.optional) return { kind: 'none' };
  return { kind: FILE_VALUE.test(option.flags) ? 'file' : 'any' };
}

function wordsOf(argument: Argument | undefined): readonly string[] | undefined {
  return argument === undefined ? undefined : argument.argChoices;
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

/** One spec for each spelling, each excluding the other. */
function optionSpecs(option: CompletionOption): string[] {
  const names = option.short === undefined ? [option.long] : [option.short, option.long];
  const help = option.help.replaceAll(/[[\]:\\]/gu, '\\$&');
  return names.map((name) => zshQuote(`(${names.join(' ')})${name}[${help}]${zshValue(option.value)}`));
}

function zshValue(value: CompletionValue): string {
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

function optionSpec(option: CompletionOption): string {
  const short = option.short === undefined ? [] : [`-s ${option.short.replace(/^-/u, '')}`];
  const long = `-l ${option.long.replace(/^--/u, '')}`;
  return [...short, long, ...fishValue(option.value), `-d ${fishQuote(option.help)}`].join(' ');
}

function fishValue(value: CompletionValue): string[] {
  switch (value.kind) {
    case 'none':
      return [];
    case 'words':
      return [`-x -a ${fishQuote(value.words.join(' '))}`];
    case 'file':
      return ['-r'];
    case 'any':
      return ['-x'];
    default:
      return value satisfies never;
  }
}

function fishQuote(text: string): string {
  return `'${text.replaceAll(/['\\]/gu, '\\$&')}'`;
}
