/** The command `eval`: results, errors, and the lines of `--jsonl`. */

/* oxlint-disable unicorn/no-thenable -- the name is the contract's, and it holds plain data */
import { describe, expect, test } from 'vitest';
import { capturedRun, spawnedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { write } = testFolder();
const CONTEXT = write(
  'context.yaml',
  'vcluster: {name: vc, namespace: ns, config: {a: 1}}\nvirtualObject: {metadata: {name: web}}\n',
);

describe('one expression', () => {
  test('prints its value as JSON', async () => {
    const args = ['[value, context.path, context.vcluster.config.a, context.virtualObject.metadata.name]'];
    const flags = ['--value', '"v"', '--path', 'a.0', '--context', CONTEXT];
    expect(await spawnedRun(['eval', ...args, ...flags])).toEqual({
      code: 0,
      out: '["v","a.0",1,"web"]\n',
      err: '',
    });
  });

  test.each([
    ['value + 1', 'evaluated in the daemon\n'],
    ['value.a', 'evaluated in the sandbox: the daemon does not evaluate it on these inputs\n'],
    ['value + /a/.source', 'evaluated in the sandbox: the daemon does not evaluate /a/ (line 1, column 9)\n'],
  ])('says where %s is evaluated', async (expression, err) => {
    expect(await capturedRun(['eval', '--place', expression, '--value', '1'])).toMatchObject({
      code: 0,
      err,
    });
  });

  test('has the virtual cluster of a configuration', async () => {
    const config = write(
      'config.yaml',
      'endpointSyncer: {name: shop, host: {namespace: team-a}}\nnetworking: {advanced: {clusterDomain: example.org}}\n',
    );
    const expression =
      '((of) => [of.name, of.namespace, of.config.networking?.advanced.clusterDomain ?? null])(context.vcluster)';
    expect(await capturedRun(['eval', expression, '--config', config])).toEqual({
      code: 0,
      out: '["shop","team-a","example.org"]\n',
      err: '',
    });
    const named = ['eval', expression, '--config', config, '--context', CONTEXT];
    expect((await capturedRun(named)).out).toBe('["vc","ns",null]\n');
    write('config.yaml', 'endpointSyncer: {nam: shop}\n');
    expect(await capturedRun(['eval', '1', '--config', config])).toMatchObject({ code: 2, out: '' });
  });

  test.each([
    [
      ['value.a.b', '--value', '{}'],
      1,
      "runtime: TypeError: Cannot read properties of undefined (reading 'b') (line 1, column 9)\n",
    ],
    [['value +'], 1, 'syntax: unexpected end of the expression (line 1, column 8)\n'],
    [
      ['1', '--value', 'text'],
      2,
      `error: --value is not JSON; a string needs its quotes: --value '"text"'\n`,
    ],
    [[], 2, 'error: specify an expression, or --jsonl to read expressions from standard input\n'],
    [
      ['value', '--jsonl'],
      2,
      'error: specify an expression, or --jsonl to read expressions from standard input\n',
    ],
  ])('%j fails with one line', async (args, code, err) => {
    const result = await capturedRun(['eval', ...args]);
    expect({ ...result, err: result.err.replace(/\(run with.*\n/, '') }).toEqual({ code, out: '', err });
  });
});

describe('lines', () => {
  const ask = async (...lines: readonly unknown[]): Promise<unknown[]> => {
    const input = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
    const { code, out } = await spawnedRun(['eval', '--jsonl'], input);
    expect(code).toBe(0);
    return out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
  };

  test('say where they were evaluated', async () => {
    const input = [
      { id: 1, expression: 'value + 1', value: 1 },
      { id: 2, expression: '[/a/.source, value]', value: 1 },
    ].map((line) => JSON.stringify(line));
    const { out } = await spawnedRun(['eval', '--jsonl', '--place'], input.join('\n'));
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { id: 1, value: 2, place: 'daemon' },
      { id: 2, value: ['a', 1], place: 'sandbox', declined: { construct: '/a/', line: 1, column: 2 } },
    ]);
  });

  test('return their results in order, hostile ones included', async () => {
    const context = { vcluster: { name: 'a' }, virtualObject: { x: 1 } };
    const answers = await ask(
      { id: 1, expression: 'value + 1', value: 1 },
      { id: 'two', expression: '(() => { for (;;) {} })()', value: 1 },
      { id: 3, expression: '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)' },
      { id: 4, expression: '[valueExists, context.vcluster.name, context.path]', context, path: 'p' },
      { id: 5, expression: 'Object.keys(value)', valueJson: '{"__proto__":1}' },
      { id: 6, expression: 'undefined' },
      { id: 7, expression: '(x = 1)', then: { expression: 'typeof x + value', value: 'v' } },
      { id: 8, expression: 'context.vcluster.name', context: { vcluster: { name: 'b' } } },
      { id: 9, expression: 'value + "\u2028"', value: '\u2028' },
      { id: { any: 'id' }, expression: 'value.b', value: { b: null } },
    );
    expect(answers).toMatchObject([
      { id: 1, value: 2 },
      { id: 'two', error: { kind: 'timeout' } },
      { id: 3, error: { kind: 'killed' } },
      { id: 4, value: [false, 'a', 'p'] },
      { id: 5, value: ['__proto__'] },
      { id: 6, undefined: true },
      { id: 7, error: { kind: 'runtime', line: 1 }, then: { value: 'undefinedv' } },
      { id: 8, value: 'b' },
      { id: 9, value: '\u2028\u2028' },
      { id: { any: 'id' }, value: null },
    ]);
  });

  test('that cannot be parsed return syntax errors', async () => {
    const answers = await ask(
      'garbage',
      '[1]',
      '',
      { id: 4 },
      { id: 5, expression: '1', valueJson: '{' },
      { id: 6, expression: '1', context: 7 },
      { id: 7, expression: '1', then: 8 },
      { id: 8, expression: 'vlaue' },
    );
    expect(answers).toMatchObject([
      { id: null, error: { kind: 'syntax' } },
      { id: null, error: { kind: 'syntax', message: 'line 2: not an object' } },
      { id: 4, error: { kind: 'syntax', message: 'line 4: `expression` is not a string' } },
      { id: 5, error: { kind: 'syntax' } },
      { id: 6, error: { kind: 'syntax', message: 'line 6: `context` is not an object' } },
      { id: 7, value: 1, then: { error: { kind: 'syntax', message: 'line 7: `then` is not an object' } } },
      { id: 8, error: { kind: 'forbidden', line: 1, column: 1 } },
    ]);
  });
});
