/** Parsing and validation of a configuration, with defaults, flags and environment. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { formatPath } from '../../../src/config-file/finding.ts';
import { FLAGS } from '../../../src/cli/config/flags.ts';
import { ownerOf } from '../../../src/syncer/translation.ts';
import { parseText, problemsIn, validConfig, withSyncer } from './setup.ts';

describe('defaults', () => {
  test('a file with only the name', () => {
    const { vclusterValues, sync } = validConfig('endpointSyncer: {name: vc}');
    expect(sync).toEqual({
      endpoints: { enabled: true, patches: [] },
      endpointSlices: { enabled: true, patches: [] },
      services: { enabled: true, patches: [] },
      syncedByVcluster: undefined,
      namespaces: { kind: 'single' },
      enabledResources: new Set([
        'configMaps',
        'endpointSlices',
        'endpoints',
        'persistentVolumeClaims',
        'pods',
        'secrets',
        'services',
      ]),
      enabledCustomResources: new Set(),
    });
    expect(vclusterValues).toMatchObject({
      sync: { toHost: { endpointSlices: { enabled: true }, endpoints: { enabled: true } } },
      networking: { podCIDR: '10.244.0.0/16' },
    });
    expect(vclusterValues['endpointSyncer']).toBeUndefined();
  });

  test('a key without a value is a key that is not set', () => {
    const text =
      'sync:\n  toHost:\n    endpoints:\n      patches:\n    secrets:\nendpointSyncer:\n  name: vc\n  workers:\n  log:\nmanagementApi:\n';
    expect(validConfig(text)).toEqual(validConfig('endpointSyncer: {name: vc}'));
  });

  test("vCluster's other keys are merged with its defaults and kept, known or not", () => {
    const { vclusterValues, sync } = validConfig(
      'controlPlane: {coredns: {deployment: {replicas: 3}}}\nmine: {a: [1]}\nmanagementApi: {dataDir: /secret}\n' +
        'sync: {toHost: {ingresses: {enabled: true}, secrets: {enabled: false}, customResources: {gadgets.example.com: {enabled: true}, x.y: {}}}, fromHost: {csiNodes: {enabled: auto}}}\n' +
        'endpointSyncer: {name: vc}',
    );
    expect(vclusterValues).toMatchObject({
      controlPlane: { coredns: { deployment: { replicas: 3, labels: {} }, enabled: true } },
      mine: { a: [1] },
      sync: { fromHost: { csiNodes: { enabled: 'auto' } } },
    });
    expect(Object.keys(vclusterValues)).not.toContain('managementApi');
    expect(sync.enabledResources.has('ingresses')).toBe(true);
    expect(sync.enabledResources.has('secrets')).toBe(false);
    expect(sync.enabledCustomResources).toEqual(new Set(['gadgets.example.com']));
  });

  test('keys that lead to prototypes stay data', () => {
    const { vclusterValues } = validConfig(
      '__proto__: {x: 1}\nconstructor: {y: 1}\nendpointSyncer: {name: vc}',
    );
    expect(Object.hasOwn(vclusterValues, '__proto__')).toBe(true);
    expect(JSON.stringify(vclusterValues)).toContain('"__proto__":{"x":1}');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });
});

describe('all errors, in the order of the file', () => {
  test('a file with many errors', () => {
    const text = `sync:
  toHost:
    endpoints:
      enabled: "yes"
      patchs: []
    secrets: {enabled: auto}
endpointSyncer:
  name: My_Cluster
  wrokers: 5
  workers: 500
  sandbox: {memory: lots}
  log: {level: inf}
managementApi:
  tls: {certFile: a}
  ports: 1
`;
    expect(problemsIn(text)).toEqual([
      '4:16 sync.toHost.endpoints.enabled must be true or false, found "yes": write true without quotes',
      '5:7 sync.toHost.endpoints.patchs unknown key "patchs", did you mean "patches"?',
      '6:24 sync.toHost.secrets.enabled must be true or false, found "auto"',
      '8:9 endpointSyncer.name must be a DNS label (lower-case letters, digits and "-", at most 63 characters, a letter or digit at both ends), found "My_Cluster"',
      '9:3 endpointSyncer.wrokers unknown key "wrokers", did you mean "workers"?',
      '10:12 endpointSyncer.workers must be at most 256, found 500',
      '11:21 endpointSyncer.sandbox.memory must be a size such as 64Mi or 1G, found "lots"',
      '12:16 endpointSyncer.log.level must be one of trace, debug, info, warn, error, silent, found "inf", did you mean "info"?',
      '14:3 managementApi.tls.keyFile is required with certFile',
      '15:3 managementApi.ports unknown key "ports"; known here: enabled, bindAddress, tls, dataDir, store, issuer, maxTtl, tokenTtl, delegatedAuth, auditLog, bootstrapKeyFile',
    ]);
    expect(parseText(text).config).toBeUndefined();
  });

  test('the excerpt shows the line with a caret', () => {
    const [problem] = parseText('endpointSyncer:\n\tname: x').problems;
    expect(problem).toMatchObject({ file: 'f.yaml', line: 2, column: 1, excerpt: '\tname: x\n^' });
  });

  test('a malformed file has only syntax errors', () => {
    expect(
      problemsIn('endpointSyncer:\n  name: [x\nsync: {toHost: {endpoints: {patchs: 1}}}').every((p) =>
        /^[23]:/u.test(p),
      ),
    ).toBe(true);
    expect(problemsIn('- a')).toEqual([
      '1:1  the file must be a mapping of keys to values: write lines such as "key: value"',
    ]);
  });

  test('duplicate keys do not hide other errors', () => {
    expect(problemsIn('endpointSyncer:\n  name: vc\n  name: vc\n  workers: 0\n')).toEqual([
      '3:3  the key "name" is already set in line 2: remove one of the two',
      '4:12 endpointSyncer.workers must be at least 1, found 0',
    ]);
  });
});

describe('rules between fields', () => {
  test.each([
    [
      'sandbox: {expressionTimeout: 2s}',
      '3:32 endpointSyncer.sandbox.expressionTimeout expressionTimeout (2s) must not be longer than batchTimeout (1s)',
    ],
    [
      'owner: {kind: StatefulSet}',
      '3:3 endpointSyncer.owner.name is required if endpointSyncer.owner is set',
    ],
    ['owner: {kind: Gadget, name: x}', '3:3 endpointSyncer.owner.apiVersion is required for the kind Gadget'],
    [
      'virtual: {kubeconfig: a, secret: b}',
      '3:36 endpointSyncer.virtual.secret cannot be combined with kubeconfig: set one of the two',
    ],
    [
      'leaderElection: {leaseDuration: 5s}',
      '3:35 endpointSyncer.leaderElection.leaseDuration renewDeadline (10s) must not be longer than leaseDuration (5s)',
    ],
    [
      'references: {onlyLabelled: "a b"}',
      '3:30 endpointSyncer.references.onlyLabelled must be a label, KEY or KEY=VALUE such as example.com/import=true, found "a b"',
    ],
  ])('%s', (lines, problem) => {
    expect(problemsIn(withSyncer(lines))).toEqual([problem]);
  });

  test('the apiVersion of a well-known owner kind is optional', () => {
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'a' };
    const config = validConfig(withSyncer('owner: {kind: StatefulSet, name: a}'));
    expect(config.owner).toEqual(owner);
    expect(ownerOf(config)).toEqual({ ...owner, isOptional: false });
  });

  test("by default, vCluster's Service owns the copies if it exists, and an empty kind is none", () => {
    const service = { apiVersion: 'v1', kind: 'Service', name: 'vc', isOptional: true };
    expect(ownerOf(validConfig(withSyncer('')))).toEqual(service);
    expect(ownerOf(validConfig(withSyncer('owner: {kind: ""}')))).toBeUndefined();
  });

  test('the name is required, and the message says how to set it', () => {
    expect(problemsIn('endpointSyncer:\n  workers: 1')).toEqual([
      '1:1 endpointSyncer.name is required: the name of the virtual cluster, here, with --name or in VCLUSTER_NAME',
    ]);
    expect(problemsIn('')).toHaveLength(1);
  });
});

describe('enabled features', () => {
  test('Services are accepted', () => {
    expect(problemsIn(withSyncer('services: sync'))).toEqual([]);
    expect(validConfig(withSyncer('services: sync')).services).toEqual({ mode: 'sync', allow: [] });
    const services = { mode: 'sync', allow: ['externalIPs', 'loadBalancerIP'] };
    expect(validConfig(withSyncer(`services: ${JSON.stringify(services)}`)).services).toEqual(services);
  });

  test('the legacy multi-namespace mode', () => {
    expect(
      validConfig('endpointSyncer: {name: vc}\nexperimental: {multiNamespaceMode: {enabled: true}}').sync
        .namespaces,
    ).toEqual({ kind: 'legacy-multi' });
  });

  test('both together, without mappings', () => {
    expect(
      problemsIn(
        'endpointSyncer: {name: vc}\nsync: {toHost: {namespaces: {enabled: true}}}\nexperimental: {multiNamespaceMode: {enabled: true}}',
      ),
    ).toEqual([
      '2:17 sync.toHost.namespaces.mappings.byName are empty: sync.toHost.namespaces.enabled needs at least one mapping',
      expect.stringMatching(/^3:46 experimental.multiNamespaceMode.enabled cannot be combined/u),
    ]);
  });
});

describe('flags, environment, file, defaults', () => {
  const text = 'endpointSyncer: {name: file, workers: 3, virtual: {secret: s, context: c}}';

  test('flags win over the environment, the environment over the file', () => {
    expect(validConfig(text).name).toBe('file');
    expect(validConfig(text, { env: { VCLUSTER_NAME: 'env' } }).name).toBe('env');
    expect(validConfig(text, { env: { VCLUSTER_NAME: '' } }).name).toBe('file');
    expect(validConfig(text, { env: { VCLUSTER_NAME: 'env' }, flags: { name: 'flag' } }).name).toBe('flag');
  });

  test('a flag replaces the fields that it excludes', () => {
    expect(validConfig(text, { flags: { 'virtual.kubeconfig': 'k' } }).virtual).toEqual({
      kubeconfig: 'k',
      context: '',
      secret: '',
      server: '',
      adopt: false,
    });
    expect(
      validConfig(text, { flags: { 'virtual.kubeconfig': 'k', 'virtual.context': 'd' } }).virtual,
    ).toEqual({ kubeconfig: 'k', context: 'd', secret: '', server: '', adopt: false });
    expect(problemsIn(text, { flags: { 'virtual.kubeconfig': 'k', 'virtual.secret': 's' } })).toEqual([
      expect.stringMatching(/cannot be combined/u),
    ]);
  });

  test('values of flags and variables are converted to the type of the field', () => {
    const flags = { workers: '7', requireService: 'true', 'sandbox.memory': '64Mi', 'log.level': 'debug' };
    expect(validConfig(text, { flags })).toMatchObject({
      workers: 7,
      requireService: true,
      sandbox: { memory: 64 * 2 ** 20 },
      log: { level: 'debug' },
    });
  });

  test('an error names the flag or the variable instead of a position', () => {
    const { problems } = parseText(text, { env: { VCLUSTER_NAME: 'A' }, flags: { workers: 'x' } });
    expect(problems.map(({ file, line, path, excerpt }) => [file, line, path, excerpt])).toEqual([
      ['VCLUSTER_NAME', 0, 'endpointSyncer.name', ''],
      ['--workers', 0, 'endpointSyncer.workers', ''],
    ]);
  });

  test('a section of the wrong type is reported even if flags set its fields', () => {
    expect(problemsIn('endpointSyncer: nope', { flags: { name: 'x' } })).toEqual([
      '1:17 endpointSyncer must be a mapping, found "nope"',
    ]);
  });

  test.each(FLAGS)('--$flag sets $field', ({ field, type, words }) => {
    const value = words?.[0] ?? { number: '7', switch: 'false', text: undefined }[type];
    const flags = { name: 'vc', ...(value === undefined ? {} : { [field]: value }) };
    expect(parseText('', { flags }).problems).toEqual([]);
  });

  test('an unknown field in the flags is an InvariantError', () => {
    expect(() => parseText('', { flags: { nope: '1' } })).toThrow('no flag sets the field nope');
  });
});

describe('any file', () => {
  const words =
    'sync toHost endpoints patches endpointSyncer name workers sandbox memory log ' +
    'level managementApi path labels reference enabled __proto__ namespaces mappings byName owner';
  const key = fc.constantFrom(...words.split(' '));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom<unknown>(null, true, 'x', 'value', '1s', 0, 5, -1, 1.5, '', {}, []),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 5 }),
    ),
  }));

  test('results in a configuration or an error with a position, and does not throw', () => {
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 5 }), (content) => {
        const { config, problems } = parseText(stringify(content));
        const hasError = problems.some((problem) => problem.severity === 'error');
        expect(hasError).toBe(config === undefined);
        for (const problem of problems) {
          expect(problem.line).toBeGreaterThan(0);
          expect(problem.column).toBeGreaterThan(0);
          expect(problem.excerpt).toContain('^');
        }
      }),
      { numRuns: 300 },
    );
  });

  test('invalid values at known paths are reported at their position', () => {
    const paths = FLAGS.filter(({ type }) => type !== 'switch').map(({ section, field }) => [
      section,
      ...field.split('.'),
    ]);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.constantFrom<unknown>([1], { a: 1 }, true), (path, wrong) => {
        const content = path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), wrong);
        const found = parseText(stringify(content)).problems.map((problem) => problem.path);
        expect(found.filter((at) => `${at}.`.startsWith(`${formatPath(path)}.`))).not.toEqual([]);
      }),
    );
  });
});
