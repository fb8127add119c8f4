/** The interface that scripts rely on: commands, flags, defaults, exit codes and output shapes. A change here breaks users. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CONNECTION_FIELDS } from '../../src/cli/config/flags.ts';
import { COMMANDS } from '../../src/cli/program.ts';
import { capturedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { folder: FOLDER, write: file } = testFolder();

describe('commands have their flags', () => {
  const ACCESS =
    '--config --name --virtual-kubeconfig --virtual-context --host-kubeconfig --host-context --host-namespace';
  const LIVE = `--vcluster --namespace ${ACCESS}`;
  const API = '--server --token --kubeconfig --config';
  const ROWS = [
    ['run', `--dry-run --once --vcluster-config --workers --log-level --http-bind-address ${ACCESS}`],
    ['demo', '--once --dir --output'],
    ['api', '--config'],
    ['validate', '--output --strict --config'],
    ['render', '--config --filename --host --reverse --virtual --output'],
    [
      'patch',
      '--config --patches --filename --reverse --virtual-object --host-object --name --host-namespace --namespace',
    ],
    ['eval', '--value --path --context --jsonl'],
    ['test', '--output --coverage --update --watch'],
    ['diff', `--show-bookkeeping ${LIVE}`],
    ['explain', `--host --output ${LIVE}`],
    ['status', `--output --namespace --selector --watch ${LIVE}`],
    ['rbac', '--cluster --as --service-account --config'],
    ['migrate', '--vcluster-config --name --host-namespace --virtual-kubeconfig --host-kubeconfig --output'],
    ['playground', '--config --port'],
    ['names', '--kind --reverse --output --config --name --host-namespace'],
    ['keys bootstrap', '--config'],
    ['keys create', API],
    ['keys get', API],
    ['keys list', API],
    ['keys rotate', `--overlap ${API}`],
    ['keys revoke', API],
    ['keys token', `--output ${API}`],
    ['store backup', '--config'],
    ['store verify', '--config'],
    ['store compact', '--config'],
    ['cleanup', `--yes --dry-run --kind --unused ${LIVE}`],
    ['completion', '--help'],
    ['version', '--help'],
    ['adopt', ACCESS],
    ['healthcheck', '--url --timeout --config'],
    ['schema', '--write --check --modeline'],
  ] as const;

  test('each command has a row', () => {
    const named = new Set<string>(ROWS.map(([name]) => name.replace(/ .*/u, '')));
    expect(COMMANDS.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([]);
  });

  test.each(ROWS)('%s', async (name, flags) => {
    const { code, out } = await capturedRun([...name.split(' '), '--help']);
    expect(code).toBe(0);
    for (const flag of flags.split(' ')) expect(out).toMatch(new RegExp(`(^|[ ,])${flag}\\b`, 'mu'));
  });

  test.each([
    ['render', '-f, --filename'],
    ['patch', '-f, --filename'],
    ['status', '-n, --namespace'],
    ['status', '-l, --selector'],
    ['names', '-o, --output'],
  ])('%s: %s', async (name, flag) => {
    expect((await capturedRun([name, '--help'])).out).toContain(flag);
  });
});

describe('the same rule for every command', () => {
  const NAMES = COMMANDS.map(({ name }) => name).concat(
    ...['bootstrap', 'create', 'get', 'list', 'rotate', 'revoke', 'token'].map((part) => `keys ${part}`),
  );
  const helpOf = async (name: string): Promise<string> =>
    (await capturedRun([...name.split(' '), '--help'])).out.replaceAll(/\n {20,}/gu, ' ');

  test.each(NAMES)('%s: a command that reaches a cluster has every flag that says how', async (name) => {
    const help = await helpOf(name);
    const flags = CONNECTION_FIELDS.map((field) => `--${field.replace('.', '-')}`);
    for (const cluster of ['--virtual-', '--host-']) {
      // `store` has a host only, in which its Secrets are.
      const all = flags.filter((flag) => flag.startsWith(cluster));
      const listed = all.filter((flag) => help.includes(`${flag} <`));
      expect(listed).toEqual(listed.length === 0 ? [] : all);
    }
  });

  const hasNamespace = async (name: string): Promise<string> =>
    (await helpOf(name)).split('\n').find((line) => / (?:-n, )?--namespace </u.test(line)) ?? '';

  test('-n is the host namespace where there is --vcluster, and a virtual one elsewhere', async () => {
    const rules: Record<string, string> = {};
    for (const name of NAMES) {
      const line = await hasNamespace(name);
      const isOfHost = (await helpOf(name)).includes('--vcluster <');
      if (isOfHost || line !== '') rules[name] = line.replace(/^.*<name> +/u, isOfHost ? '--vcluster: ' : '');
    }
    const host = '--vcluster: with --vcluster: its namespace on the host';
    expect(rules).toEqual({
      diff: host,
      explain: host,
      migrate: host,
      cleanup: host,
      status: `${host}, unless --host-namespace is given; otherwise: only this virtual namespace`,
      patch: 'virtual namespace of an object without one',
    });
  });

  test.each(['diff', 'explain shop/web', 'migrate', 'cleanup --yes'])(
    '%s: -n without --vcluster is refused before anything is read: a filter that is ignored would be everything',
    async (line) => {
      for (const namespace of [
        ['-n', 'shop'],
        ['--vcluster', 'a', '--host-namespace', 'b', '-n', 'shop'],
      ]) {
        const { code, out, err } = await capturedRun([
          ...line.split(' '),
          '--host-kubeconfig',
          '/nowhere',
          ...namespace,
        ]);
        expect([code, out, err]).toEqual([
          2,
          '',
          expect.stringMatching(/^error: -n shop: .* leave it out\n/u),
        ]);
      }
    },
  );

  test('status: -A beside the namespace of a vCluster, and not beside a virtual one', async () => {
    const beside = ['status', '--vcluster', 'a', '--host-kubeconfig', '/nowhere', '-n', 'b', '-A'];
    expect((await capturedRun(beside)).err).toContain('/nowhere');
    const both = await capturedRun(['status', '--config', '/nowhere', '-n', 'b', '-A']);
    expect([both.code, both.err]).toEqual([2, expect.stringMatching(/^error: -A lists all .*-n b/u)]);
  });
});

describe('the help lists what differs from run to run, and --set for every other field', () => {
  /** Bounds on the length of the help. */
  test.each([
    ['run', 24],
    ['rbac', 18],
    ['cleanup', 22],
    ['status', 22],
    ['api', 12],
  ])('%s: at most %i options', async (name, max) => {
    const { out } = await capturedRun([name, '--help']);
    const shown = out.split('\n').filter((line) => /^ +(-\w, )?--/u.test(line));
    expect(shown.length).toBeLessThanOrEqual(max);
    expect(out).toContain('--set <key=value>');
  });

  test('a flag that is not listed still works', async () => {
    const { code, out } = await capturedRun(['validate', '--name', 'a', '--on-host-delete', 'deleteVirtual']);
    expect([code, out]).toEqual([0, expect.stringContaining('endpointSyncer.onHostDelete')]);
  });
});

describe('offline commands: exit code, standard output, standard error', () => {
  const patches = `[{path: 'metadata.annotations["example.com/owner"]', expression: '"team-" + value'}]`;
  const config = file(
    'config.yaml',
    `sync: {toHost: {endpoints: {patches: ${patches}}}}\nendpointSyncer: {name: vc, host: {namespace: team-a}}\n`,
  );
  const invalid = file('invalid.yaml', 'endpointSyncer: {name: vc, workers: 0}\n');
  const invalidKeys = file('keys.yaml', 'managementApi: {maxTtl: 1}\n');
  const values = file(
    'values.yaml',
    'sync:\n  toHost:\n    endpoints: {enabled: true}\n    endpointSlices: {enabled: false}\n',
  );
  const beside = file('beside.yaml', `endpointSyncer: {name: vc, vclusterConfig: ${values}}\n`);
  const bothLines =
    /beside\.yaml:1:1: sync\.toHost\.endpoints\.enabled: .*\n.*\n.*\n+\S+values\.yaml:3:26: sync\.toHost\.endpoints\.enabled: /u;
  const failing = file(
    'failing.yaml',
    `sync: {toHost: {endpoints: {patches: [{path: metadata.annotations.a, expression: value.b.c}]}}}
endpointSyncer: {name: vc, host: {namespace: team-a}}\n`,
  );
  const list = file('patches.yaml', patches);
  const mapping = file('mapping.yaml', `patches: ${patches}`);
  const objects = file(
    'objects.yaml',
    `{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop, annotations: {example.com/owner: a, a: x}}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {selector: {app: db}}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: db, namespace: shop}}
`,
  );
  const one = file(
    'one.yaml',
    '{apiVersion: v1, kind: Endpoints, metadata: {name: web, annotations: {example.com/owner: a, a: x}}}',
  );
  const slices = file(
    'slices.yaml',
    `sync:
  toHost: {endpointSlices: {enabled: true, patches: [{path: 'metadata.annotations["example.com/owner"]', expression: '"slice-" + value'}]}}
endpointSyncer: {name: vc, host: {namespace: team-a}}\n`,
  );
  const slice = file(
    'slice.yaml',
    '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web, annotations: {example.com/owner: a}}, addressType: IPv4, endpoints: []}',
  );
  const nameless = file(
    'names.yaml',
    '{apiVersion: v1, kind: Endpoints, metadata: {name: Web_1}}\n---\n{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: a.b}}\n',
  );
  const skipped = /^skipped Endpoints shop\/db: service has a selector\n$/u;
  const names = ['--name', 'vc', '--host-namespace', 'team-a'];

  test.each([
    [['validate', config], 0, /^$/u, /valid/u],
    [
      ['validate', invalid],
      2,
      /^\S+invalid\.yaml:1:37: endpointSyncer\.workers: .*\n.*\n +\^\n$/u,
      /1 error/u,
    ],
    [['validate', join(FOLDER, 'none.yaml')], 2, /none\.yaml: cannot be read/u, /1 error/u],
    [['run', '--config', invalid], 2, /^$/u, /^\S+invalid\.yaml:1:37: endpointSyncer\.workers: /u],
    [['validate', beside], 2, bothLines, /2 errors/u],
    [['run', '--config', beside], 2, /^$/u, bothLines],
    [['run', '--config', config, '--once'], 2, /^$/u, /--once requires --dry-run/u],
    [['render', '--config', config, '-f', objects], 0, /owner: team-a/u, skipped],
    [['render', '--config', config, '-f', objects, '-o', 'json'], 0, /"kind": "List"/u, skipped],
    // The default owner is not among the host objects.
    [['render', '--config', config, '-f', objects, '-o', 'json'], 0, /^(?![^]*ownerReferences)/u, skipped],
    [
      ['render', '--config', failing, '-f', objects],
      1,
      /example\.com\/owner: a/u,
      /patches\[0\] at metadata\.annotations\.a: .*\n.*\n +\^\n/u,
    ],
    [['render', '--config', config], 2, /^$/u, /required option/u],
    [['patch', '--config', config, '-f', one], 0, /owner: team-a\n/u, /^$/u],
    [['patch', '--patches', list, '-f', one], 0, /owner: team-a\n/u, /^$/u],
    [['patch', '--patches', mapping, '-f', one, ...names], 0, /owner: team-a\n/u, /^$/u],
    [['patch', '--config', failing, '-f', one], 1, /^$/u, /patches\[0\]/u],
    [['patch', '-f', one], 2, /^$/u, /no patches/u],
    [['patch', '--config', slices, '-f', slice], 0, /owner: slice-a\n/u, /^$/u],
    [['patch', '--config', slices, '-f', one], 0, /owner: a\n/u, /^$/u],
    [
      ['patch', '--patches', config, '-f', one],
      2,
      /^$/u,
      /^\S+config\.yaml:1:1: contains no patches: .*--config\n.*\n\^\n$/u,
    ],
    [
      ['render', '--config', config, '-f', list],
      2,
      /^$/u,
      /^\S+patches\.yaml:1:1: a document must be an object/u,
    ],
    [['eval', 'value.a + 1', '--value', '{"a":1}'], 0, /^2\n$/u, /^$/u],
    [['eval', 'value.a.b', '--value', '{}'], 1, /^$/u, /^[^\n]+\n$/u],
    [
      ['names', 'shop/web', ...names],
      0,
      /^KIND +VIRTUAL +HOST +SHORTNAME\nEndpoints +shop\/web +team-a\/web-x-shop-x-vc +v\w{13}\n$/u,
      /^$/u,
    ],
    [['names', '--reverse', 'web-x-shop-x-vc', '--config', config], 0, /shop\/web/u, /^$/u],
    [['names', 'web', ...names], 2, /^$/u, /write NAMESPACE\/NAME/u],
    [
      ['rbac', '--config', config, '--cluster', 'host'],
      0,
      /kind: ServiceAccount\nmetadata:\n {2}name: endpoint-syncer\n {2}namespace: team-a\n/u,
      /^$/u,
    ],
    [
      ['rbac', '--config', config, '--as', 'vcluster-values'],
      0,
      /^rbac:\n {2}role:\n {4}extraRules:\n/u,
      /^$/u,
    ],
    [['test', FOLDER], 2, /^$/u, /no \*endpoint-syncer-test\.yaml/u],
    [['version'], 0, /^endpoint-syncer \d+\.\d+\.\d+ \(node v/u, /^$/u],
    [['completion', 'zsh'], 0, /^#compdef endpoint-syncer\n/u, /^$/u],
    [
      ['explain', '--config', config, 'web'],
      2,
      /^$/u,
      /^error: "web": write NAMESPACE\/NAME, such as default\/web\n/u,
    ],
    [
      ['diff', '--config', config, 'shop/web', 'a/b/c'],
      2,
      /^$/u,
      /^error: "a\/b\/c": write NAMESPACE\/NAME, such as default\/web\n/u,
    ],
    [
      ['render', '--config', config, '-f', nameless],
      2,
      /^$/u,
      /^\S+names\.yaml:1:52: metadata\.name: Endpoints "Web_1" has a name that no object can have: .*\n[^]*^\S+names\.yaml:3:68: metadata\.namespace: Endpoints "web" is in namespace "a\.b", which no cluster can have$/mu,
    ],
    [['status', '--config', invalid], 2, /^$/u, /workers/u],
    [['diff', '--config', invalid], 2, /^$/u, /workers/u],
    [['explain', '--config', invalid, 'shop/web'], 2, /^$/u, /workers/u],
    [['cleanup', '--config', invalid], 2, /^$/u, /workers/u],
    [['api', '--config', invalidKeys], 2, /^$/u, /^\S+keys\.yaml:1:25: managementApi\.maxTtl: /u],
    [['keys', 'list', '--server', 'nonsense'], 2, /^$/u, /https:\/\//u],
    [['store', 'backup'], 2, /^$/u, /store backup FILE/u],
    [
      ['store', 'backup', join(FOLDER, 'b.db'), '--data-dir', join(FOLDER, 'none')],
      1,
      /^$/u,
      /management\.db does not exist: .*start the API once\n$/u,
    ],
  ] as const)('%j: %i', async (args, code, out, err) => {
    const run = await capturedRun([...args]);
    expect(run.code).toBe(code);
    expect(run.out).toMatch(out);
    expect(run.err).toMatch(err);
  });
});
