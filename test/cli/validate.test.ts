/** The command `validate`: exit codes, formats, positions and warnings. */

import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { configJsonSchema } from '../../src/cli/config/schema.ts';
import { capturedRun, spawnedRun, type CapturedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { folder, write } = testFolder();
write('good.yaml', 'endpointSyncer: {name: vc}\n');
write('bad.yaml', 'endpointSyncer:\n  name: vc\n  wrokers: 5\n  onHostDelete: deleteVirtual\n');

/** With the folder as working directory. */
async function run(args: string[], env: Record<string, string> = {}): Promise<CapturedRun> {
  const here = process.cwd();
  for (const name of ['ENDPOINT_SYNCER_CONFIG', 'VCLUSTER_NAME']) vi.stubEnv(name, env[name]);
  process.chdir(folder);
  try {
    return await capturedRun(args);
  } finally {
    process.chdir(here);
    vi.unstubAllEnvs();
  }
}

describe('validate', () => {
  test('a valid file: a line on standard error, nothing on standard output', async () => {
    expect(await run(['validate', 'good.yaml'])).toEqual({ code: 0, out: '', err: '1 file: valid\n' });
  });

  const chart = `replicaCount: 1
config:
  endpointSyncer: {name: vc}
  sync:
    toHost:
      endpoints:
        patches:
          - path: metadata.annotations["a"]
            expression: 'value +'
`;
  test.each([
    ['values of the chart', chart, 9],
    ['what helm get values prints', `USER-SUPPLIED VALUES:\n${chart}`, 10],
    ['the same with CRLF', `USER-SUPPLIED VALUES:\n${chart}`.replaceAll('\n', '\r\n'), 10],
    ['values of the chart as JSON', JSON.stringify(parse(chart)), 1],
  ])('%s: each mistake of the configuration in them, at its place', async (_, text, line) => {
    write('values.yaml', text);
    const { code, out } = await run(['validate', 'values.yaml', '-o', 'json']);
    expect([code, parse(out)]).toEqual([
      2,
      [expect.objectContaining({ line, path: 'config.sync.toHost.endpoints.patches[0].expression' })],
    ]);
    write('values.yaml', text.replace('value +', 'value'));
    expect(await run(['validate', 'values.yaml'])).toMatchObject({ code: 0, out: '' });
  });

  test('the daemon does not take the values of the chart for its configuration', async () => {
    write('values.yaml', chart);
    expect((await run(['run', '--config', 'values.yaml'])).err).toContain(
      'pass what is below config alone, or check it with "endpoint-syncer validate"',
    );
  });

  test('every problem with its line and caret, exit 2', async () => {
    expect(await run(['validate', 'bad.yaml', 'good.yaml', 'none.yaml'])).toEqual({
      code: 2,
      out: `bad.yaml:3:3: endpointSyncer.wrokers: unknown key "wrokers", did you mean "workers"?
  wrokers: 5
  ^

bad.yaml:4:17: endpointSyncer.onHostDelete: warning: what else deletes copies, such as a garbage collector of the host or another replica without leaderElection, then deletes the objects of the virtual cluster, too
  onHostDelete: deleteVirtual
                ^

none.yaml: cannot be read: there is no such file; correct its path
`,
      err: '3 files: 2 errors and 1 warning\n',
    });
  });

  test('a file for the key API alone needs no name of a virtual cluster, one for run does', async () => {
    const validated = (text: string): Promise<CapturedRun> => {
      write('api.yaml', text);
      return run(['validate', 'api.yaml']);
    };
    expect(await validated('managementApi: {dataDir: data}\n')).toMatchObject({ code: 0, out: '' });
    const sync = await validated('managementApi: {dataDir: data}\nsync: {}\n');
    expect([sync.code, sync.out]).toEqual([2, expect.stringContaining('endpointSyncer.name: is required')]);
    const http = 'endpointSyncer: {http: {bindAddress: "127.0.0.1:0"}, log: {level: info}}\n';
    expect(await validated(`managementApi: {dataDir: data}\n${http}`)).toMatchObject({ code: 0, out: '' });
    const other = await validated('managementApi: {dataDir: data}\nendpointSyncer: {workers: 5}\n');
    expect([other.code, other.out]).toEqual([2, expect.stringContaining('endpointSyncer.name: is required')]);
    const days = await validated('managementApi: {maxTtl: 30d}\n');
    expect(days.out).toContain('found "30d": d is not a unit, write 720h');
  });

  test('JSON for scripts', async () => {
    const { code, out, err } = await run(['validate', '-o', 'json', 'bad.yaml', 'good.yaml']);
    expect([code, err]).toEqual([2, '']);
    expect(JSON.parse(out)).toEqual([
      {
        file: 'bad.yaml',
        line: 3,
        column: 3,
        path: 'endpointSyncer.wrokers',
        severity: 'error',
        message: 'unknown key "wrokers", did you mean "workers"?',
      },
      expect.objectContaining({ line: 4, column: 17, severity: 'warning' }),
    ]);
    expect(await run(['validate', '-o', 'json', 'good.yaml'])).toMatchObject({ code: 0, out: '[]\n' });
  });

  test('JSON says where each expression is evaluated, and what needs the sandbox', async () => {
    const patches = [
      ' {path: "metadata.annotations.a", expression: "value + 1", reverseExpression: "value.slice(0, -1)"}',
      ' {path: "metadata.annotations.b", expression: "value.replace(/a+/i, \'b\')"}',
      ' {path: "subsets[*].ports[?(/http/i.test(@.name))].port", expression: "value + 1"}',
    ];
    const yaml = `sync: {toHost: {endpoints: {patches: [\n${patches.join(',\n')}\n ]}}}\n`;
    const placesOf = async (settings: string): Promise<unknown[]> => {
      write('places.yaml', `endpointSyncer: {name: vc${settings}}\n${yaml}`);
      const { code, out } = await run(['validate', '--place', '-o', 'json', 'places.yaml']);
      expect(code).toBe(0);
      const all = JSON.parse(out) as { severity: string; place: string; line: number; message: string }[];
      return all
        .filter(({ severity }) => severity === 'info')
        .map(({ place, line, message }) => [place, line, message]);
    };
    const here = 'evaluated in the daemon';
    const notHere = (text: string) => `evaluated in the sandbox: the daemon does not evaluate ${text}`;
    expect(await placesOf('')).toEqual([
      ['daemon', 3, here],
      ['daemon', 3, here],
      ['sandbox', 4, notHere('/a+/i')],
      ['sandbox', 5, notHere('/http/i')],
      ['daemon', 5, here],
    ]);
    const off = 'evaluated in the sandbox: endpointSyncer.sandbox.localEvaluation is false';
    expect(await placesOf(', sandbox: {localEvaluation: false}')).toEqual(
      [3, 3, 4, 5, 5].map((line) => ['sandbox', line, off]),
    );
  });

  test('standard input, the environment, flags', async () => {
    const [piped, flagged] = await Promise.all([
      spawnedRun(['validate', '-'], 'endpointSyncer: {name: A}'),
      spawnedRun(['validate', '--name', 'vc', '--workers', '0', '-']),
    ]);
    const fromEnvironment = await run(['validate'], { ENDPOINT_SYNCER_CONFIG: 'good.yaml' });
    expect([piped.code, piped.out.split(' ')[0]]).toEqual([2, '<stdin>:1:24:']);
    expect([fromEnvironment.code, fromEnvironment.out]).toEqual([0, '']);
    expect([flagged.code, flagged.out]).toEqual([
      2,
      '--workers: endpointSyncer.workers: must be at least 1, found 0\n',
    ]);
  });
});

describe('schema', () => {
  test('prints a modeline that works in any folder', async () => {
    const { code, out } = await capturedRun(['schema', '--modeline']);
    const url = /^# yaml-language-server: \$schema=(file:\/\/\S+)\n$/u.exec(out)?.[1] ?? '';
    expect([code, readFileSync(new URL(url), 'utf8')]).toEqual([0, configJsonSchema()]);
  });

  test('prints the schema, which is the shipped one', async () => {
    const printed = await run(['schema']);
    const checked = await run(['schema', '--check']);
    expect(JSON.parse(printed.out)).toMatchObject({ title: 'endpoint-syncer configuration' });
    expect(checked).toEqual({ code: 0, out: '', err: '' });
  });
});

describe('the commonest mistakes', () => {
  const patches = (...lines: string[]): string =>
    `endpointSyncer: {name: vc}\nsync:\n  toHost:\n    endpoints:\n      patches:\n${lines.map((line) => `        ${line}\n`).join('')}`;
  const inFlow = (entry: string): string =>
    `endpointSyncer: {name: vc}\nsync: {toHost: {endpoints: {patches: [${entry}]}}}\n`;
  const quoted = (written: string): string =>
    `the value ends at its closing quote: quote the whole expression: ${written}`;
  const typo = (wrong: string, right: string): string => `unknown key "${wrong}", did you mean "${right}"?`;

  test.each([
    [
      'an expression of which YAML sees only the start',
      patches('- path: metadata.annotations.a', '  expression: "team-" + value  # why'),
      [`7:31 ${quoted(`'"team-" + value'`)}`],
    ],
    [
      'the same in single quotes',
      patches("- expression: 'team-' + value", '  path: metadata.annotations.a'),
      [`6:31 ${quoted(`"'team-' + value"`)}`],
    ],
    [
      'the same with both quotes',
      patches(`- reverseExpression: "it's " + value`, '  path: metadata.annotations.a'),
      [`6:38 ${quoted(`'"it''s " + value'`)}`],
    ],
    [
      'the same in flow style',
      inFlow('{path: metadata.annotations.a, expression: "team-" + value}'),
      [`2:90 ${quoted(`'"team-" + value'`)}`],
    ],
    [
      'a key with dots',
      patches('- path: metadata.annotations.example.com/owner', '  expression: value'),
      [
        '6:38 never matches: a key with dots needs brackets and quotes: metadata.annotations["example.com/owner"]',
      ],
    ],
    [
      'a label with dots, in brackets without quotes',
      patches('- path: metadata.labels.app.kubernetes.io/name', '  expression: value'),
      [
        '6:33 never matches: a key with dots needs brackets and quotes: metadata.labels["app.kubernetes.io/name"]',
      ],
    ],
    ['a misspelt name', 'endpointSyncer:\n  nmae: vc\n', [`2:3 ${typo('nmae', 'name')}`]],
    [
      'a misspelt mode, and a misspelt path',
      patches(
        '- path: metadata.annotations.a',
        '  expresion: value',
        '- paht: metadata.annotations.b',
        '  expression: value',
      ),
      [`7:11 ${typo('expresion', 'expression')}`, `8:11 ${typo('paht', 'path')}`],
    ],
    [
      'a misspelt member of a reference',
      patches('- path: metadata.annotations.a', '  reference: {apiVersion: v1, knid: Secret}'),
      [`7:39 ${typo('knid', 'kind')}`],
    ],
    [
      'a misspelt member of the owner',
      'endpointSyncer:\n  name: vc\n  owner: {kind: Service, nam: vc}\n',
      [`3:26 ${typo('nam', 'name')}`],
    ],
  ])('%s is explained by one sentence', async (_, text, expected) => {
    write('mistake.yaml', text);
    const { out } = await run(['validate', 'mistake.yaml', '-o', 'json']);
    const problems = JSON.parse(out) as { line: number; column: number; message: string }[];
    expect(problems.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual(expected);
  });

  test.each([
    [
      'text that is quoted for YAML alone',
      patches('- path: metadata.annotations.a', '  expression: "team-value"'),
      '`team` is not available here; in scope are value, valueExists and context, and text needs quotes inside the expression',
    ],
    [
      'a statement',
      patches('- path: metadata.annotations.a', '  expression: return value'),
      'write the result without `return`: value.trim()',
    ],
    [
      'a list without brackets',
      patches('- path: subsets.addresses.ip', '  expression: value'),
      'never matches: subsets is a list: write subsets[*].addresses',
    ],
    [
      'a kind that is only switched on',
      'endpointSyncer: {name: vc}\nsync: {toHost: {endpoints: true}}\n',
      'must be a mapping, found true: write {enabled: true}',
    ],
    [
      'a section that is one value',
      'endpointSyncer: {name: vc, log: debug}\n',
      'must be a mapping, found "debug": it has the keys level, format',
    ],
    [
      'a key above its section',
      'endpointSyncer: {name: vc}\nhost: {namespace: x}\n',
      'this key is not read: it belongs below endpointSyncer',
    ],
    [
      'a home folder that no shell expands',
      'endpointSyncer: {name: vc, host: {kubeconfig: ~/.kube/none}}\n',
      expect.stringMatching(/there is no file .*: ~ is not expanded, write the whole path$/u),
    ],
  ])('%s gets its sentence', async (_, text, expected) => {
    write('mistake.yaml', text);
    const { out } = await run(['validate', 'mistake.yaml', '-o', 'json']);
    expect((JSON.parse(out) as { message: string }[]).map(({ message }) => message)).toEqual([expected]);
  });

  test('a command without a configuration names --config', async () => {
    const advice =
      'there is no configuration file: use --config FILE or set ENDPOINT_SYNCER_CONFIG; without one, --name is required\n';
    expect(await run(['run'])).toEqual({ code: 2, out: '', err: advice });
    expect((await run(['run', '--workers', '0'])).err).toContain(advice);
    expect((await run(['validate'])).err).toContain('without a file: 1 error');
    expect((await run(['validate'])).out).toBe(advice);
    expect((await run(['run', 'good.yaml'])).err).toContain(
      'but got 1: good.yaml; did you mean --config good.yaml?\n',
    );
  });

  test('a kubeconfig that does not exist is named, with the settings to correct', async () => {
    const advice = 'name another file with --host-kubeconfig or in endpointSyncer.host.kubeconfig';
    const { code, err } = await run(['status', '--name', 'vc', '--host-kubeconfig', '/nowhere/host']);
    expect(code).toBe(1);
    expect(err).toContain(
      `error: the kubeconfig /nowhere/host cannot be read: there is no such file; ${advice}\n`,
    );
    const keys = await run(['keys', 'list', '--kubeconfig', '/nowhere/keys']);
    expect(keys.err).toBe(
      'error: the kubeconfig /nowhere/keys cannot be read: there is no such file; name another file with --kubeconfig\n',
    );
  });
});
