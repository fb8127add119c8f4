/** The command `patch`: output, flags and exit codes. */

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { capturedRun, spawnedRun, type CapturedRun } from '../captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write } = testFolder();

beforeAll(() => {
  vi.stubEnv('ENDPOINT_SYNCER_CONFIG', '');
  vi.stubEnv('VCLUSTER_NAME', '');
});

afterAll(() => void vi.unstubAllEnvs());

let files = 0;

const file = (text: string): string => write(`${files++}.yaml`, text);

/** The whole program in this process; the object comes from a file, as there is one standard input only. */
function patch(args: readonly string[], object?: string): Promise<CapturedRun> {
  const input = object === undefined ? [] : ['-f', file(object)];
  return capturedRun(['patch', ...args, ...input]);
}

const OBJECT = `
apiVersion: v1
kind: Endpoints
metadata: {name: web, annotations: {example.com/ref: creds, switch: "on"}}
subsets:
- addresses: [{ip: 10.0.0.1, hostname: a}, {ip: 10.0.0.2}]
`;

describe('patch', () => {
  test('warns of a result that only newer versions of Kubernetes take', async () => {
    const patches = file(`
- path: spec.trafficDistribution
  expression: '"PreferSameNode"'
`);
    const service = `
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {type: ClusterIP, ports: [{port: 80, targetPort: 80}], trafficDistribution: PreferClose}
`;
    const { code, err } = await patch(['--patches', patches], service);
    expect(err).toBe(
      'warning: Service shop/db: spec.trafficDistribution: Kubernetes before 1.34 refuses "PreferSameNode"\n',
    );
    expect(code).toBe(0);
  });

  test('prints the patched object', async () => {
    const patches = file(`
- path: subsets[*].addresses[*].hostname
  expression: '"t-" + value + "-" + context.vcluster.name + "-" + context.vcluster.namespace'
- path: metadata.annotations["example.com/ref"]
  reference: {apiVersion: v1, kind: Secret}
`);
    const { code, out, err } = await patch(
      ['--patches', patches, '--name', 'suffix', '--host-namespace', 'host', '--namespace', 'pqr'],
      OBJECT.replace('creds', 'abc'),
    );
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(parse(out)).toEqual({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', annotations: { 'example.com/ref': 'v5v1vrloayhcba', switch: 'on' } },
      subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 't-a-suffix-host' }, { ip: '10.0.0.2' }] }],
    });
    expect(out).toContain('switch: "on"');
  });

  test('has the object itself in the context where it is the virtual one, unless --virtual-object names another', async () => {
    const patches = file(`
- path: metadata.annotations.switch
  expression: '[value, context.virtualObject.metadata.name, context.hostObject === null].join()'
  reverseExpression: '[value, context.hostObject.metadata.name, context.virtualObject === null].join()'
`);
    const run = async (...args: string[]): Promise<unknown> => {
      const { out } = await patch(['--patches', patches, '-o', 'json', ...args], OBJECT);
      return JSON.parse(out) as unknown;
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
    const { out } = await patch([...args, ...objects]);
    expect(JSON.parse(out)).toEqual({ a: 'yHV', b: 'own', c: 1 });
  });

  test('uses the patches and names of a configuration', async () => {
    const config = file(`
endpointSyncer: {name: suffix, host: {namespace: vcluster}, references: {naming: long}}
sync: {toHost: {endpoints: {patches: [{path: 'root.list[*]', reference: {apiVersion: v1, kind: Secret, namePath: nm, namespacePath: ns}}]}}}
`);
    const { code, out } = await patch(['--config', config], '{root: {list: [{nm: abc, ns: pqr}]}}');
    expect(parse(out)).toEqual({ root: { list: [{ nm: 'abc-x-pqr-x-suffix', ns: 'vcluster' }] } });
    expect(code).toBe(0);
    const other = file(`- {path: a, expression: 'context.vcluster.config.sync.toHost.services.enabled'}`);
    expect((await patch(['--config', config, '--patches', other], 'a: 1')).out).toBe('a: true\n');
  });

  test('a patch that fails: index, path, caret, exit code 1, nothing on standard output', async () => {
    const patches = file(`
- {path: kind, expression: value}
- path: subsets[*].addresses[*].ip
  expression: |
    const suffix = "x";
    value.no.where + suffix
`);
    const { code, out, err } = await patch(['--patches', patches, '-f', file(OBJECT)]);
    expect(code).toBe(1);
    expect(out).toBe('');
    const [line, source, caret] = err.split('\n');
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
    const outcomes: CapturedRun[] = [];
    for (const [args, object] of runs) outcomes.push(await patch(args, object));
    expect(outcomes.map(({ code, out }) => `${code}${out}`)).toEqual(outcomes.map(() => '2'));
    const [path, expression, object, list, empty, noPatches, noObject, nothing] = outcomes.map(
      ({ err }) => err,
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

  test('an object of a kind that no API server takes: exit code 2 and the position', async () => {
    const good = file('- {path: a, expression: value}');
    const wrong = file(`${OBJECT}ports: []\n`);
    for (const args of [
      ['-f', wrong],
      ['-f', file('a: 1'), '--virtual-object', wrong],
    ]) {
      const { code, out, err } = await patch(['--patches', good, ...args]);
      expect([code, out]).toEqual([2, '']);
      expect(err).toMatch(/:7:1: ports: unknown field "ports"; did you mean subsets\[\*\]\.ports\?\n/u);
    }
  });

  test('from standard input; keys that lead to prototypes are data', async () => {
    const { out } = await spawnedRun(
      ['patch', '--patches', file('- {path: "a.*", expression: value + 1}'), '-o', 'json'],
      '{"a": {"__proto__": 1, "b": 1}, "constructor": {"x": 2}}',
    );
    expect(out.replaceAll(/\s/g, '')).toBe('{"a":{"__proto__":1,"b":2},"constructor":{"x":2}}');
  });

  test('the objects of a list do not share parts', async () => {
    const patches = file('- {path: a, expression: "[value, value]"}');
    expect(parse((await patch(['--patches', patches], 'a: {b: 1}')).out)).toEqual({
      a: [{ b: 1 }, { b: 1 }],
    });
  });
});

describe('results are validated as by render', () => {
  const patches = '- {path: metadata.annotations.switch, expression: "42"}';

  test.each(['v1\nkind: Endpoints', 'example.com/v1\nkind: Gadget'])('an annotation of %s', async (kind) => {
    const { code, out, err } = await patch(
      ['--patches', file(patches)],
      OBJECT.replace('v1\nkind: Endpoints', kind),
    );
    expect(err).toMatch(/^patches\[0\] at metadata\.annotations\.switch: .*must be a string, not 42/);
    expect([code, out]).toEqual([1, '']);
  });

  test('an address', async () => {
    const { code, err } = await patch(
      ['--patches', file(`- {path: "subsets[0].addresses[0].ip", expression: "'nowhere'"}`)],
      OBJECT,
    );
    expect(err).toContain('patches[0] at subsets.0.addresses.0.ip');
    expect(code).toBe(1);
  });
});
