/** Shell completion: the commands, options and choices that each script offers. */

import { execFileSync } from 'node:child_process';
import { Argument, Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { bashCompletion, fishCompletion, describeCommand, zshCompletion } from '../../src/cli/completion.ts';

const COMMANDS = [
  new Command('check')
    .description("check files: it's [quick]")
    .argument('[files...]')
    .addOption(new Option('-o, --output <format>', 'format').choices(['text', 'json']))
    .option('-c, --config <file>', 'a file')
    .option('--name <name>', 'a name')
    .option('--dry-run', 'nothing is written')
    .addOption(new Option('--secret <x>').hideHelp()),
  new Command('shell').description('a word').addArgument(new Argument('<shell>').choices(['bash', 'zsh'])),
].map(describeCommand);

/** The completions that bash offers after these words. */
function bashOffers(...words: string[]): string[] {
  const script = `${bashCompletion(COMMANDS)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _endpoint_syncer; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const text = execFileSync('bash', ['-c', script, 'bash', 'endpoint-syncer', ...words], {
    encoding: 'utf8',
  });
  return text.split('\n').filter((word) => word !== '');
}

describe('bash', () => {
  test.each([
    [[''], ['check', 'shell', 'help', '--help']],
    [['ch'], ['check']],
    [
      ['help', ''],
      ['check', 'shell'],
    ],
    [
      ['check', '--'],
      ['--output', '--config', '--name', '--dry-run', '--help'],
    ],
    [
      ['check', '--dry-run', '-o', ''],
      ['text', 'json'],
    ],
    [['check', '--output', 'j'], ['json']],
    [['check', '--config', ''], []],
    [['check', ''], []],
    [['shell', 'b'], ['bash']],
    [['unknown', ''], []],
  ])('%j', (words, offers) => {
    expect(bashOffers(...words)).toEqual(offers);
  });
});

describe('zsh and fish', () => {
  test('zsh: quotes, colons and brackets cannot end a description', () => {
    const script = zshCompletion(COMMANDS);
    expect(script).toContain(String.raw`'check:check files\: it'\''s [quick]'`);
    expect(script).toContain(`'(-o --output)--output[format]:value:(text json)'`);
    expect(script).toContain(`'(-c --config)-c[a file]:file:_files'`);
    expect(script).toContain(`shell) _arguments`);
    expect(script).not.toContain('secret');
  });

  test('fish', () => {
    const script = fishCompletion(COMMANDS);
    expect(script).toContain(String.raw`-f -a check -d 'check files: it\'s [quick]'`);
    expect(script).toContain(
      `'__fish_seen_subcommand_from check' -s o -l output -x -a 'text json' -d 'format'`,
    );
    expect(script).toContain(`'__fish_seen_subcommand_from shell' -f -a 'bash zsh'`);
    expect(script).not.toContain('secret');
  });
});
