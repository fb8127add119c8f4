/** The command `patch`: output, flags and exit codes. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { runProgram } from '../../../src/cli/program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const folder = mkdtempSync(join(tmpdir(), 'patch-command-'));

beforeAll(() => {
  vi.stubEnv('ENDPOINT_SYNCER_CONFIG', '');
  vi.stubEnv('VCLUSTER_NAME', '');
});

afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

let files = 0;

function file(text: string): string {
  const path = join(folder, `${files++}.yaml`);
  writeFileSync(path, text);
  return path;
}

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The whole program in this process; the object comes from a file, as there is one standard input only. */
async function patch(args: readonly string[], object?: string): Promise<Outcome> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      written[stream] += String(text);
      return true;
    }),
  );
  try {
    const input = object === undefined ? [] : ['-f', file(object)];
    return { code: await runProgram(['patch', ...args, ...input]), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** A process of its own, with standard input. */
function spawned(args: readonly string[], stdin: string): Promise<Outcome> {
  const command = ['--no-node-snapshot', join(ROOT, 'src/main.ts'), 'patch', ...args];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, command, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr });
    });
    child.stdin?.end(stdin);
  });
}

const OBJECT = `
apiVersion: v1
kind: Endpoints
metadata: {name: web, annotations: {example.com/ref: creds, switch: "on"}}
subsets:
- addresses: [{ip: 10.0.0.1, hostname: a}, {ip: 10.0.0.2}]
unknown: {kept: 1.5}
`;

describe('patch', () => {
  test('prints the patched object', async () => {
    const patches = file(`
- path: subsets[*].addresses[*].hostname
  expression: '"t-" + value + "-" + context.vcluster.name + "-" + context.vcluster.namespace'
- path: metadata.annotations["example.com/ref"]
  reference: {apiVersion: v1, kind: Secret}
`);
    const { code, stdout, stderr } = await patch(
      ['--patches', patches, '--name', 'suffix', '--host-namespace', 'host', '--namespace', 'pqr'],
      OBJECT.replace('creds', 'abc'),
    );
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(parse(stdout)).toEqual({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', annotations: { 'example.com/ref': 'v5v1vrloayhcba', switch: 'on' } },
      subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 't-a-suffix-host' }, { ip: '10.0.0.2' }] }],
      unknown: { kept: 1.5 },
    });
    expect(stdout).toContain('switch: "on"');
  });

  test('has the object itself in the context where it is the virtual one, unless --virtual-object names another', async () => {
    const patches = file(`
- path: metadata.annotations.switch
  expression: '[value, context.virtualObject.metadata.name, context.hostObject === null].join()'
  reverseExpression: '[value, context.hostObject.metadata.name, context.virtualObject === null].join()'
`);
    const run = async (...args: string[]): Promise<unknown> => {
      const { stdout } = await patch(['--patches', patches, '-o', 'json', ...args], OBJECT);
      return JSON.parse(stdout) as unknown;
    };
    const switched = (text: string): object => ({ metadata: { annotations: { switch: text } } });
    expect(await run()).toMatchObject(switched('on,web,true'));
    expect(await run('--virtual-object', file('metadata: {name: other}'))).toMatchObject(
      switched('on,other,true'),
    );
    expect(await run('--reverse')).toMatchObject(switched('on,web,true'));
  });

  test('with --reverse has both objects in the context', async () => {
    const patches = file(`{patches: [
      {path: a, expression: '"x" + value', reverseExpression: 'value.slice(1) + context.hostObject.h + context.virtualObject.v'},
      {path: b, expression: '"x"'}]}`);
    const args = [
      '--patches',
      patches,
      '--reverse',
      '-o',
      'json',
      '-f',
      file('{"a": "xy", "b": "changed", "c": 1}'),
    ];
    const objects = ['--host-object', file('h: H'), '--virtual-object', file('{v: V, b: own}')];
    const { stdout } = await patch([...args, ...objects]);
    expect(JSON.parse(stdout)).toEqual({ a: 'yHV', b: 'own', c: 1 });
  });

  test('uses the patches and names of a configuration', async () => {
    const config = file(`
endpointSyncer: {name: suffix, host: {namespace: vcluster}, references: {naming: long}}
sync: {toHost: {endpoints: {patches: [{path: 'root.list[*]', reference: {apiVersion: v1, kind: Secret, namePath: nm, namespacePath: ns}}]}}}
`);
    const { code, stdout } = await patch(['--config', config], '{root: {list: [{nm: abc, ns: pqr}]}}');
    expect(parse(stdout)).toEqual({ root: { list: [{ nm: 'abc-x-pqr-x-suffix', ns: 'vcluster' }] } });
    expect(code).toBe(0);
    const other = file(`- {path: a, expression: 'context.vcluster.config.sync.toHost.services.enabled'}`);
    expect((await patch(['--config', config, '--patches', other], 'a: 1')).stdout).toBe('a: true\n');
  });

  test('a patch that fails: index, path, caret, exit code 1, nothing on standard output', async () => {
    const patches = file(`
- {path: kind, expression: value}
- path: subsets[*].addresses[*].ip
  expression: |
    const suffix = "x";
    value.no.where + suffix
`);
    const { code, stdout, stderr } = await patch(['--patches', patches, '-f', file(OBJECT)]);
    expect(code).toBe(1);
    expect(stdout).toBe('');
    const [line, source, caret] = stderr.split('\n');
    expect(line).toMatch(/^patches\[1\] at subsets\.0\.addresses\.0\.ip: TypeError: .* \(runtime\)$/);
    expect(source).toBe('value.no.where + suffix');
    expect(caret).toMatch(/^ +\^$/);
  });

  test('invalid input: exit code 2 and the position', async () => {
    const good = file('- {path: a, expression: value}');
    const runs: [args: string[], object?: string][] = [
      [['--patches', file('- path: a[?(@.x]\n  expression: value')], 'a: 1'],
      [['--patches', file('- {path: a, expression: "value +"}')], 'a: 1'],
      [['--patches', good], '{"a": ['],
      [['--patches', good], '[1]'],
      [['--patches', good], ''],
      [['--patches', join(folder, 'nowhere.yaml')], 'a: 1'],
      [['--patches', good, '-f', join(folder, 'nowhere.yaml')]],
      [[], 'a: 1'],
    ];
    const outcomes: Outcome[] = [];
    for (const [args, object] of runs) outcomes.push(await patch(args, object));
    expect(outcomes.map(({ code, stdout }) => `${code}${stdout}`)).toEqual(outcomes.map(() => '2'));
    const [path, expression, object, list, empty, noPatches, noObject, nothing] = outcomes.map(
      ({ stderr }) => stderr,
    );
    expect(path).toMatch(/:1:10: patches\[0\]\.path: unclosed filter: .*\n- path: a\[\?\(@\.x\]\n {9}\^\n/);
    expect(expression).toMatch(/patches\[0\]\.expression: /);
    expect(object).toMatch(/\.yaml:1:/);
    expect(list).toMatch(/\.yaml:1:1: .*mapping/);
    expect(empty).toMatch(/\.yaml: contains no object/);
    expect(noPatches).toMatch(/nowhere\.yaml: cannot be read/);
    expect(noObject).toMatch(/nowhere\.yaml: cannot be read/);
    expect(nothing).toMatch(/no patches: use --patches FILE or --config FILE/);
  });

  test('from standard input; keys that lead to prototypes are data', async () => {
    const { stdout } = await spawned(
      ['--patches', file('- {path: "a.*", expression: value + 1}'), '-o', 'json'],
      '{"a": {"__proto__": 1, "b": 1}, "constructor": {"x": 2}}',
    );
    expect(stdout.replaceAll(/\s/g, '')).toBe('{"a":{"__proto__":1,"b":2},"constructor":{"x":2}}');
  });

  test('the objects of a list do not share parts', async () => {
    const patches = file('- {path: a, expression: "[value, value]"}');
    expect(parse((await patch(['--patches', patches], 'a: {b: 1}')).stdout)).toEqual({
      a: [{ b: 1 }, { b: 1 }],
    });
  });
});

describe('results are validated as by render', () => {
  const patches = '- {path: metadata.annotations.switch, expression: "42"}';

  test.each(['v1\nkind: Endpoints', 'example.com/v1\nkind: Gadget'])('an annotation of %s', async (kind) => {
    const { code, stdout, stderr } = await patch(
      ['--patches', file(patches)],
      OBJECT.replace('v1\nkind: Endpoints', kind),
    );
    expect(stderr).toMatch(/^patches\[0\] at metadata\.annotations\.switch: .*must be a string, not 42/);
    expect([code, stdout]).toEqual([1, '']);
  });

  test('an address', async () => {
    const { code, stderr } = await patch(
      ['--patches', file(`- {path: "subsets[0].addresses[0].ip", expression: "'nowhere'"}`)],
      OBJECT,
    );
    expect(stderr).toContain('patches[0] at subsets.0.addresses.0.ip');
    expect(code).toBe(1);
  });
});
