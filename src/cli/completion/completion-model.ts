/** Which words can follow on a command line, derived from the commander definitions. */

import type { Argument, Command, Option } from 'commander';

export interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletionOption[];
  /** Words that the first argument may be; undefined: files. */
  readonly words: readonly string[] | undefined;
}

export interface CompletionOption {
  /** With the two dashes. */
  readonly long: string;
  readonly short: string | undefined;
  readonly help: string;
  readonly value: CompletionValue;
}

export type CompletionValue =
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
