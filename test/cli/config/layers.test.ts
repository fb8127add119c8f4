/** vCluster's own values file below the configuration file. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { checkConfig, loadConfig, type CheckedConfig } from '../../../src/cli/config/load.ts';
import { parseConfig } from '../../../src/cli/config/parse.ts';
import { vclusterDefaults } from '../../../src/shared-config/vcluster-values.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import type { ConfigFlags } from '../../../src/cli/config/command-line.ts';
import { sandboxSettings } from '../../../src/syncer/translation.ts';
import { brief } from './setup.ts';
import { testFolder } from '../../support/test-folder.ts';

const PATCH = 'patches: [{path: metadata.labels.a, expression: value}]';
const OFF = 'endpoints: {enabled: false}, endpointSlices: {enabled: false}';

function parse(vcluster: string, own: string, isStart = false): ReturnType<typeof parseConfig> {
  const name = own.startsWith('endpointSyncer') ? '' : 'endpointSyncer: {name: vc}\n';
  return parseConfig(
    { text: `${name}${own}`, file: 'own.yaml' },
    { env: {}, flags: {}, isStart },
    { text: vcluster, file: 'values.yaml' },
  );
}

function merged(vcluster: string, own = ''): Config {
  const { config, problems } = parse(vcluster, own);
  if (config === undefined) throw new Error(problems.map(brief).join('\n'));
  return config;
}

test.each<[string, RegExp]>([
  ['sync: {endpoints: {enabled: true}}', /values of vCluster 0\.19 or older, because of sync\.endpoints/u],
  ['syncer: {extraArgs: []}\nstorage: {persistence: true}', /values of vCluster 0\.19 or older/u],
  ['multiNamespaceMode: {enabled: true}', /values of vCluster 0\.19 or older/u],
  ['vcluster: {sync: {toHost: {}}}', /values of a chart that contains vCluster/u],
  ['apiVersion: v1\nkind: Secret\nmetadata: {name: a}', /a Kubernetes object of kind Secret/u],
])('of another file, only that is said, at a start too: %j', (vcluster, message) => {
  for (const isStart of [false, true]) {
    const { problems } = parse(vcluster, '', isStart);
    expect(problems.map(brief)).toEqual([expect.stringMatching(message)]);
  }
});

describe('inheritance from vCluster’s file', () => {
  test('the whole values file of vCluster, unchanged', () => {
    const config = merged(stringify(vclusterDefaults()));
    const alone = parseConfig(
      { text: 'endpointSyncer: {name: vc}', file: 'own.yaml' },
      { env: {}, flags: {} },
    );
    expect({ ...config, sync: { ...config.sync, syncedByVcluster: undefined } }).toEqual(alone.config);
    expect(config.sync.syncedByVcluster).toEqual(['endpoints', 'endpointSlices', 'services']);
  });

  test.each(['endpoints', 'endpointSlices'] as const)(
    'not whether %s are synced: the configuration file alone decides',
    (kind) => {
      const { sync, vclusterValues } = merged(`sync: {toHost: {${kind}: {enabled: false}}}`);
      expect(sync[kind].enabled).toBe(true);
      expect(vclusterValues).toMatchObject({ sync: { toHost: { [kind]: { enabled: true } } } });
    },
  );

  test('context.vcluster.config is what the loader of vCluster gives for its file', () => {
    const seen = (vcluster: string, own = ''): unknown =>
      sandboxSettings(merged(vcluster, own)).vcluster.config;
    const off = `sync: {toHost: {${OFF}}}`;
    const on = 'sync: {toHost: {endpoints: {enabled: true}, endpointSlices: {enabled: true}}}';
    expect(seen(off, on)).toMatchObject({
      sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: false } } },
      controlPlane: { advanced: { workloadServiceAccount: { name: 'vc-workload-vc' } } },
    });
    const account = 'controlPlane: {advanced: {workloadServiceAccount: {name: mine}}}';
    expect(seen(`${off}\n${account}`)).toMatchObject({
      controlPlane: { advanced: { workloadServiceAccount: { name: 'mine' } } },
    });
    const mapped = 'sync: {toHost: {namespaces: {enabled: true, mappings: {byName: {a: b}}}}}';
    expect(seen(mapped)).toMatchObject({
      sync: {
        toHost: { endpointSlices: { enabled: true }, secrets: { all: true }, configMaps: { all: true } },
      },
    });
  });

  test('patches, unless the configuration file has a list, an empty one too', () => {
    const vcluster = `sync: {toHost: {endpoints: {enabled: false, ${PATCH}}}}`;
    const paths = (own: string): string[] =>
      merged(vcluster, own).sync.endpoints.patches.map(({ path }) => path);
    expect(paths('')).toEqual(['metadata.labels.a']);
    expect(paths('sync: {toHost: {endpoints: {patches: [{path: b, labels: {}}]}}}')).toEqual(['b']);
    expect(paths('sync: {toHost: {endpoints: {patches: []}}}')).toEqual([]);
    expect(paths('sync: {toHost: {endpoints: {patches: }}}')).toEqual(['metadata.labels.a']);
  });

  test('kinds, mappings, the legacy mode, and everything else for expressions', () => {
    const vcluster =
      'sync: {toHost: {ingresses: {enabled: true}, secrets: {enabled: false}, customResources: {a.b: {enabled: true}}, ' +
      'namespaces: {enabled: true, mappings: {byName: {a: x, b: y}}}}}\nnetworking: {podCIDR: 1.2.3.0/24}';
    const { sync, vclusterValues } = merged(
      vcluster,
      'sync: {toHost: {secrets: {enabled: true}, namespaces: {mappings: {byName: {b: z}}}}}',
    );
    expect(sync.namespaces).toEqual({ kind: 'mappings', byName: { a: 'x', b: 'z' }, mappingsOnly: false });
    expect([...sync.enabledResources]).toEqual(expect.arrayContaining(['ingresses', 'secrets']));
    expect([...sync.enabledCustomResources]).toEqual(['a.b']);
    expect(vclusterValues).toMatchObject({ networking: { podCIDR: '1.2.3.0/24' } });
    const legacy = merged('experimental: {multiNamespaceMode: {enabled: true}}');
    expect(legacy.sync.namespaces).toEqual({ kind: 'legacy-multi' });
  });
});

describe('errors and warnings name the file', () => {
  /** `file:line:column path message` */
  const found = (vcluster: string, own: string): string[] =>
    parse(vcluster, own).problems.map((problem) => `${problem.file}:${brief(problem)}`);

  test('of each finding', () => {
    const vcluster = `sync:
  toHost:
    endpoints: {enabled: false}
    endpointSlices: {enabled: false}
    secrets: {enabled: auto}
    namespaces: {enabled: true}
`;
    expect(found(vcluster, 'sync: {toHost: {configMaps: {enabled: 1}}}')).toEqual([
      expect.stringMatching(/^own.yaml:2:39 sync.toHost.configMaps.enabled must be true or false/u),
      expect.stringMatching(/^values.yaml:5:24 sync.toHost.secrets.enabled must be true or false/u),
      expect.stringMatching(/^values.yaml:6:5 sync.toHost.namespaces.mappings.byName are empty/u),
    ]);
  });

  test('a patch that is inherited, and one that is not', () => {
    const [text, wrong] = [
      `sync: {toHost: {${OFF}}}`,
      'patches: [{path: metadata.labels.a, expression: "("}]',
    ];
    const inherited = `sync: {toHost: {endpoints: {enabled: false, ${wrong}}, endpointSlices: {enabled: false}}}`;
    expect(found(inherited, '')).toEqual([
      expect.stringMatching(/^values.yaml:1:95 sync.toHost.endpoints.patches/u),
    ]);
    expect(found(text, `sync: {toHost: {endpoints: {${wrong}}}}`)).toEqual([
      expect.stringMatching(/^own.yaml:2:79 sync.toHost.endpoints.patches/u),
    ]);
  });

  test('a syntax error in either', () => {
    expect(found('a: [', '')).toEqual([expect.stringMatching(/^values.yaml:1:5 /u)]);
    expect(found('', 'b: [')).toEqual([expect.stringMatching(/^own.yaml:2:5 /u)]);
  });

  test('a section that vCluster rejects, and keys that only vCluster reads', () => {
    const vcluster = `sync: {toHost: {${OFF}, endpoint: {}}}\nsnyc: {}\nendpointSyncer: {workers: 5}\n`;
    expect(found(vcluster, '')).toEqual([
      'values.yaml:1:80 sync.toHost.endpoint (warning) vCluster does not know this key: did you mean "endpoints"?',
      'values.yaml:2:1 snyc (warning) vCluster does not know this key: did you mean "sync"?',
      'values.yaml:3:1 endpointSyncer vCluster does not accept this section in its values: move it to own.yaml',
    ]);
  });

  test('a missing file is reported at its field', async () => {
    const { problems } = await at('missing.yaml', 'endpointSyncer: {name: vc, vclusterConfig: nowhere.yaml}');
    expect(problems.map(brief)).toEqual([
      `1:44 endpointSyncer.vclusterConfig ${join(folder, 'nowhere.yaml')} cannot be read: there is no such file; correct its path`,
    ]);
  });
});

describe('values of vCluster 0.19 are said to be that, and nothing else', () => {
  test.each([
    ['syncer: {extraArgs: [a]}', 'syncer'],
    ['vcluster: {image: "rancher/k3s:v1.27"}', 'vcluster.image'],
    ['vcluster: {extraArgs: [a]}\nservice: {type: NodePort}', 'vcluster.extraArgs'],
    ['sync: {services: {enabled: true}}', 'sync.services'],
    ['sync: {pods: {ephemeralContainers: true}}', 'sync.pods'],
    ['sync: {generic: {config: "version: v1beta1"}}', 'sync.generic'],
    ['isolation: {enabled: true}\nsync: {endpoints: {enabled: true}}', 'isolation'],
    ['coredns: {replicas: 2}\nrbac: {role: {create: true}}', 'coredns'],
  ])('%s', (text, path) => {
    const { problems } = parse(text, 'sync: {toHost: {endpoints: {enabled: true}}}', true);
    expect(problems.map((problem) => `${problem.file} ${problem.path} ${problem.message}`)).toEqual([
      `values.yaml ${path} these are values of vCluster 0.19 or older, because of ${path}: convert them with "vcluster convert config --distro k8s -f FILE", and pass the result`,
    ]);
  });
});

describe('objects that vCluster and this program would both write', () => {
  /** `file:line path severity` */
  const found = (vcluster: string, own: string, isStart = true): string[] =>
    parse(vcluster, own, isStart).problems.map(
      ({ file, path, line, severity }) => `${file}:${line} ${path} ${severity}`,
    );
  const patched = `sync: {toHost: {endpoints: {${PATCH}}}}`;
  const [endpoints, slices] = ['sync.toHost.endpoints.enabled', 'sync.toHost.endpointSlices.enabled'];

  test.each([
    ['both off in vCluster', `sync: {toHost: {${OFF}}}`, patched, []],
    [
      'Endpoints on by default in both',
      'sync:\n  toHost: {}\n',
      '',
      [
        `own.yaml:1 ${endpoints} error`,
        `own.yaml:1 ${slices} error`,
        `values.yaml:2 ${endpoints} error`,
        `values.yaml:2 ${slices} error`,
      ],
    ],
    [
      'both on, written in both',
      'sync:\n  toHost:\n    endpoints:\n      enabled: true\n    endpointSlices: {enabled: true}\n',
      'sync:\n  toHost:\n    endpoints: {enabled: true}\n    endpointSlices: {enabled: true}',
      [
        `own.yaml:4 ${endpoints} error`,
        `own.yaml:5 ${slices} error`,
        `values.yaml:4 ${endpoints} error`,
        `values.yaml:5 ${slices} error`,
      ],
    ],
    [
      'slices on in vCluster only, with patches of Endpoints',
      'sync:\n  toHost:\n    endpointSlices:\n      enabled: true\n    endpoints: {enabled: false}\n',
      `sync: {toHost: {endpointSlices: {enabled: false}, endpoints: {${PATCH}}}}`,
      [`values.yaml:4 ${slices} warning`],
    ],
    [
      'slices on by default in both',
      'sync: {toHost: {endpoints: {enabled: false}}}',
      '',
      [`own.yaml:1 ${slices} error`, `values.yaml:1 ${slices} error`],
    ],
    [
      'slices on in vCluster only',
      'sync: {toHost: {endpoints: {enabled: false}}}',
      'sync: {toHost: {endpointSlices: {enabled: false}}}',
      [],
    ],
    [
      'slices off in both',
      `sync: {toHost: {${OFF}}}`,
      'sync: {toHost: {endpointSlices: {enabled: false}}}',
      [`own.yaml:2 ${slices} warning`],
    ],
    [
      'nothing on here',
      '',
      'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}, services: {enabled: false}}}',
      [],
    ],
  ])('%s', (_, vcluster, own, expected) => {
    expect(found(vcluster, own)).toEqual(expected);
  });

  test('are Services, too, where this program syncs them: a warning', () => {
    const own = (more = ''): string =>
      `endpointSyncer: {name: vc, ${more}services: sync}\nsync: {toHost: {${OFF}}}`;
    const off = `sync: {toHost: {${OFF}}}`;
    expect(found(off, own())).toContain('own.yaml:1 endpointSyncer.services warning');
    expect(found(off, own('besideVcluster: force, '))).toContain(
      'own.yaml:1 endpointSyncer.services warning',
    );
    const none = `sync: {toHost: {${OFF}, services: {enabled: false}}}`;
    expect(
      found(none, own().replace('{toHost: {', '{toHost: {services: {enabled: true}, ')).join(),
    ).not.toContain('endpointSyncer.services');
  });

  test('are warnings with besideVcluster: force, and for commands that do not write', () => {
    const warning = [`values.yaml:1 ${endpoints} warning`, `values.yaml:1 ${slices} warning`];
    expect(found('{}', 'endpointSyncer: {name: vc, besideVcluster: force}')).toEqual(warning);
    expect(found('{}', 'endpointSyncer: {name: vc, besideVcluster: refuse}', false)).toEqual(warning);
  });

  test('name both values and the remedies', () => {
    expect(parse('{}', '', true).problems.map(brief)).toEqual([
      `1:1 ${endpoints} this program syncs Endpoints, and so does vCluster: disable one of the two, or set endpointSyncer.besideVcluster to force`,
      `1:1 ${slices} this program syncs EndpointSlices, and so does vCluster: disable one of the two, or set endpointSyncer.besideVcluster to force`,
      `1:1 ${endpoints} vCluster syncs Endpoints too: set it to false in vCluster's values`,
      `1:1 ${slices} vCluster syncs EndpointSlices too: set it to false in vCluster's values`,
    ]);
  });
});

const { folder, write } = testFolder();
mkdirSync(join(folder, 'conf'));

function at(name: string, text: string, flags: ConfigFlags = {}): Promise<CheckedConfig> {
  return checkConfig(write(name, text), { env: {}, flags });
}

describe('paths', () => {
  test('in a file are relative to that file, on the command line to the working directory', async () => {
    write('conf/values.yaml', `networking: {podCIDR: inherited}\nsync: {toHost: {${OFF}}}\n`);
    write('conf/kubeconfig', '');
    const { config, management, problems, files } = await at(
      'conf/own.yaml',
      'endpointSyncer: {name: vc, vclusterConfig: values.yaml, virtual: {kubeconfig: ./kubeconfig}, host: {kubeconfig: /dev/null}}\n' +
        'managementApi: {dataDir: ../data, tls: {certFile: tls.crt, keyFile: /etc/tls.key}, bootstrapKeyFile: first.key}\n',
      { 'host.kubeconfig': 'package.json' },
    );
    expect(problems).toEqual([]);
    expect([...files.keys()]).toEqual([join(folder, 'conf/own.yaml'), join(folder, 'conf/values.yaml')]);
    expect(config?.vclusterValues).toMatchObject({ networking: { podCIDR: 'inherited' } });
    expect(config?.vclusterConfig).toBe(join(folder, 'conf/values.yaml'));
    expect([config?.virtual.kubeconfig, config?.host.kubeconfig]).toEqual([
      join(folder, 'conf/kubeconfig'),
      'package.json',
    ]);
    expect(management).toMatchObject({
      dataDir: join(folder, 'data'),
      tls: { certFile: join(folder, 'conf/tls.crt'), keyFile: '/etc/tls.key' },
      bootstrapKeyFile: join(folder, 'conf/first.key'),
    });
  });

  test('that are not set stay empty, and the default of dataDir is relative to the file too', async () => {
    const text = 'endpointSyncer: {name: vc}';
    const { config, management } = await at('plain.yaml', text);
    expect([config?.virtual.kubeconfig, management?.dataDir]).toEqual(['', join(folder, 'data')]);
    const flagged = await at('plain.yaml', text, { dataDir: './data' });
    expect(flagged.management?.dataDir).toBe('./data');
    const without = await checkConfig(undefined, { env: {}, flags: { name: 'vc' } });
    expect(without.management?.dataDir).toBe('./data');
  });

  test('--vcluster-config wins over the file', async () => {
    const values = write('flag.yaml', `sync: {toHost: {${OFF}}}\nnetworking: {podCIDR: flag}\n`);
    const { config } = await at('own.yaml', 'endpointSyncer: {name: vc, vclusterConfig: nowhere.yaml}', {
      vclusterConfig: values,
    });
    expect(config?.vclusterValues).toMatchObject({ networking: { podCIDR: 'flag' } });
  });

  test('a kubeconfig that does not exist is a warning with its position', async () => {
    const file = write('lost.yaml', 'endpointSyncer:\n  name: vc\n  virtual: {kubeconfig: nowhere}\n');
    const { warnings } = await loadConfig({ file, env: {}, flags: {} });
    expect(warnings.map(brief)).toEqual([
      `3:25 endpointSyncer.virtual.kubeconfig (warning) there is no file ${join(folder, 'nowhere')}`,
    ]);
  });
});

test.each([
  ['https://my-vcluster.team-a', []],
  ['https://10.0.0.1:6443/base', []],
  ['my-vcluster', [expect.stringMatching(/must be the URL of an API server/u)]],
  ['https://user:pass@host', [expect.stringMatching(/must be the URL of an API server/u)]],
])('virtual.server: %s', (server, problems) => {
  const { problems: found } = parseConfig(
    { text: `endpointSyncer: {name: vc, virtual: {secret: s, server: "${server}"}}`, file: 'own.yaml' },
    { env: {}, flags: {} },
  );
  expect(found.map(({ message }) => message)).toEqual(problems);
});

describe('long names of references beside a vCluster, whose own copies have them', () => {
  const OFF_THERE = `${OFF}, services: {enabled: false}`;
  const found = (own: string, vcluster: string | undefined, isStart: boolean): string[] =>
    (vcluster === undefined
      ? parseConfig({ text: own, file: 'own.yaml' }, { env: {}, flags: {}, isStart })
      : parse(vcluster, own, isStart)
    ).problems.map(
      ({ severity, file, line, path, message }) => `${severity} ${file}:${line} ${path} ${message}`,
    );
  const ownWith = (patch: string, { naming = 'long', services = '', sync = '' } = {}): string =>
    `endpointSyncer: {name: vc, references: {naming: ${naming}}${services}}\n` +
    `sync: {toHost: {endpoints: {patches: [{path: 'metadata.annotations["a"]', reference: ${patch}}]}${sync}}}`;
  const SECRET = '{apiVersion: v1, kind: Secret}';
  const THEIRS = `sync: {toHost: {${OFF_THERE}}}`;
  const SECRETS =
    /^(\w+) own\.yaml:1 endpointSyncer\.references\.naming (.*)its copies \(sync\.toHost\.secrets\.enabled\)/u;
  const kindOf = (problems: string[]): string => problems.map((one) => SECRETS.exec(one)?.[1] ?? one).join();

  test('end a start, whatever besideVcluster says, and are a warning of other commands', () => {
    const forced = ownWith(SECRET, { services: ', besideVcluster: force' });
    for (const own of [ownWith(SECRET), forced]) {
      expect(kindOf(found(own, THEIRS, true))).toBe('error');
      expect(kindOf(found(own, THEIRS, false))).toBe('warning');
    }
  });

  test('are a warning where it is not known whether there is a vCluster', () => {
    expect(kindOf(found(ownWith(SECRET), undefined, true))).toBe('warning');
    expect(found(ownWith(SECRET, { services: ', services: sync' }), undefined, true)).toEqual([]);
  });

  test.each<[string, string, string]>([
    ['ConfigMaps', '{apiVersion: v1, kind: ConfigMap}', 'sync.toHost.configMaps.enabled'],
    [
      'all kinds that are on, of a patch that names any',
      '{apiVersion: v1, kind: Gadget, kindPath: kind, namePath: name}',
      'sync.toHost.configMaps.enabled and sync.toHost.persistentVolumeClaims.enabled and sync.toHost.secrets.enabled',
    ],
  ])('also of %s', (_, patch, settings) => {
    expect(found(ownWith(patch), THEIRS, true).join()).toContain(`its copies (${settings})`);
  });

  test.each<[string, string, string]>([
    ['short names', ownWith(SECRET, { naming: 'short' }), THEIRS],
    ['a kind that is not imported', ownWith(SECRET, { sync: ', secrets: {enabled: false}' }), THEIRS],
    [
      'a kind that vCluster does not sync',
      ownWith(SECRET, { sync: ', secrets: {enabled: true}' }),
      `sync: {toHost: {${OFF_THERE}, secrets: {enabled: false}}}`,
    ],
    ['kinds that have long names anyway', ownWith('{apiVersion: v1, kind: Service}'), THEIRS],
    ['no reference', 'endpointSyncer: {name: vc, references: {naming: long}}', THEIRS],
  ])('not for %s', (_, own, vcluster) => {
    expect(found(own, vcluster, true)).toEqual([]);
  });
});
