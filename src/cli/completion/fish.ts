/** The fish script: `endpoint-syncer completion fish | source`. */

import type { CompletionCommand, CompletionOption, CompletionValue } from './completion-model.ts';

export function fishCompletion(commands: readonly CompletionCommand[]): string {
  return `# fish completion for endpoint-syncer
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf(command: CompletionCommand): string[] {
  const seen = `-n ${quote(`__fish_seen_subcommand_from ${command.name}`)}`;
  const words =
    command.words === undefined
      ? []
      : [`complete -c endpoint-syncer ${seen} -f -a ${quote(command.words.join(' '))}`];
  return [
    `complete -c endpoint-syncer -n __fish_use_subcommand -f -a ${command.name} -d ${quote(command.summary)}`,
    ...command.options.map((option) => `complete -c endpoint-syncer ${seen} ${optionSpec(option)}`),
    ...words,
  ];
}

function optionSpec(option: CompletionOption): string {
  const short = option.short === undefined ? [] : [`-s ${option.short.replace(/^-/u, '')}`];
  const long = `-l ${option.long.replace(/^--/u, '')}`;
  return [...short, long, ...valueSpec(option.value), `-d ${quote(option.help)}`].join(' ');
}

function valueSpec(value: CompletionValue): string[] {
  switch (value.kind) {
    case 'none':
      return [];
    case 'words':
      return [`-x -a ${quote(value.words.join(' '))}`];
    case 'file':
      return ['-r'];
    case 'any':
      return ['-x'];
    default:
      return value satisfies never;
  }
}

function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/gu, '\\$&')}'`;
}
