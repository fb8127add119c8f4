/** The command line as a whole: usage errors, help and examples of every command. */

import { describe, expect, test } from 'vitest';
import { COMMANDS, EXAMPLES } from '../../src/cli/program.ts';
import { capturedRun } from './captured-run.ts';

const HINT = '(run with --help for the options)\n';

describe('an invalid command line: the error and where to find help, exit 2', () => {
  test.each([
    [['nonsense'], "error: unknown command 'nonsense'\n"],
    [['validte'], "error: unknown command 'validte'\n(Did you mean validate?)\n"],
    [['help', 'nonsense'], "error: unknown command 'nonsense'\n"],
    [['--nonsense'], "error: unknown option '--nonsense'\n"],
    [['validate', '--wrokers', '5'], "error: unknown option '--wrokers'\n(Did you mean --workers?)\n"],
    [['schema', 'x'], "error: too many arguments for 'schema'. Expected 0 arguments but got 1: x.\n"],
    [['completion'], "error: missing required argument 'shell'\n"],
    [['keys', 'revok'], "error: unknown command 'revok'\n(Did you mean revoke?)\n"],
    [['keys', 'revoke'], "error: missing required argument 'names'\n"],
    [
      ['version', '-o', 'xml'],
      "error: option '-o, --output <format>' argument 'xml' is invalid. Allowed choices are text, json.\n",
    ],
  ])('%j', async (args, message) => {
    expect(await capturedRun(args)).toEqual({ code: 2, out: '', err: message + HINT });
  });
});

describe('equivalent command lines print the same output', () => {
  test.each([
    [['--version'], ['version']],
    [
      ['--version', '-o', 'json'],
      ['version', '-o', 'json'],
    ],
    [['help'], ['--help']],
    [
      ['help', 'validate'],
      ['validate', '--help'],
    ],
    [
      ['help', 'keys', 'create'],
      ['keys', 'create', '--help'],
    ],
  ])('%j as %j', async (one, other) => {
    const answer = await capturedRun(one);
    expect(answer).toEqual(await capturedRun(other));
    expect(answer).toMatchObject({ code: 0, err: '' });
  });
});

describe('--help', () => {
  test('every example is a command line of its command', () => {
    for (const [name, lines] of Object.entries(EXAMPLES))
      for (const line of lines) expect(line).toMatch(new RegExp(`(^|[|(] ?)endpoint-syncer ${name}\\b`));
  });

  const keys = ['bootstrap', 'create', 'get', 'list', 'rotate', 'revoke', 'token'].map(
    (name) => `keys ${name}`,
  );

  test.each([...COMMANDS.map(({ name }) => name), ...keys])(
    '%s: two examples, then its own options, then the configuration',
    async (name) => {
      const { code, out } = await capturedRun([...name.split(' '), '--help']);
      expect(code).toBe(0);
      expect(EXAMPLES[name]).toHaveLength(2);
      for (const line of EXAMPLES[name] ?? []) expect(out).toContain(`  ${line}\n`);
      expect(out.split('\nExamples:')).toHaveLength(2);
      const own = out.indexOf('\nOptions:');
      const configuration = out.indexOf('\nConfiguration (');
      expect(out.indexOf('\nExamples:')).toBeLessThan(own);
      expect(configuration === -1 || own < configuration).toBe(true);
    },
  );

  test('every option of an example exists', async () => {
    for (const [name, lines] of Object.entries(EXAMPLES)) {
      const { out } = await capturedRun([...name.split(' '), '--help']);
      const options = lines.flatMap(
        (line) => (line.split(`endpoint-syncer ${name}`)[1] ?? '').match(/ --?[a-z][-a-z]*/gu) ?? [],
      );
      for (const option of options.filter((text) => !text.startsWith(' -f -')))
        expect(out, `${name}:${option}`).toMatch(new RegExp(`${option}\\b`));
    }
  });
});
