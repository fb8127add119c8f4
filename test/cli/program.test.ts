import { describe, expect, test } from 'vitest';
import { capturedRun } from './captured-run.ts';

const HINT = '(run with --help for the options)\n';

describe('a command line that is not understood says what is wrong and where help is, exit 2', () => {
  test.each([
    [['nonsense'], "error: unknown command 'nonsense'\n"],
    [['validte'], "error: unknown command 'validte'\n(Did you mean validate?)\n"],
    [['help', 'nonsense'], "error: unknown command 'nonsense'\n"],
    [['--nonsense'], "error: unknown option '--nonsense'\n"],
    [['validate', '--nonsense'], "error: unknown option '--nonsense'\n"],
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

describe('what is asked for in two ways answers the same', () => {
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
