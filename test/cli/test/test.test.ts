/** The command `test`: output, flags and exit codes; and the cases of the examples in this repository. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { capturedRun } from '../captured-run.ts';

const MAIN = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts');
const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder with these files. */
function folderWith(files: Record<string, string>): string {
  const path = mkdtempSync(join(folder, 'case-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const CONFIG = `sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.annotations.owner
          expression: 'value === "nobody" ? "none" : "team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: metadata.labels.broken
          expression: value.a.b
        - path: metadata.annotations.tls
          reference: {apiVersion: v1, kind: Secret}
endpointSyncer: {name: vc, host: {namespace: host}}
`;
const WEB = `apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, annotations: {owner: shop}}
subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]
`;
const BASE = { 'config.yaml': CONFIG, 'objects/web.yaml': WEB };
const VIRTUAL_WEB = 'virtual: [objects/web.yaml]';

/** A test file with a case for each of these texts. */
function casesOf(texts: readonly string[]): Record<string, string> {
  const cases = texts.map((text) => `  - name: it\n${text.replaceAll(/^/gmu, '    ').trimEnd()}\n`);
  return { ...BASE, 'endpoint-syncer-test.yaml': `config: config.yaml\ncases:\n${cases.join('')}` };
}

function oneCase(lines: string): Record<string, string> {
  return casesOf([lines]);
}

interface JsonReport {
  passed: number;
  failed: number;
  cases: {
    result: string;
    mismatches: { subject: string; path: string; expected: unknown; actual: unknown }[];
  }[];
  coverage?: { missed: string[] }[];
}

const HOLDS: Record<string, string> = {
  'a subset of the copy': `${VIRTUAL_WEB}
expect: {host: [{kind: Endpoints, metadata: {name: web-x-shop-x-vc, annotations: {owner: team-shop}}}]}`,
  'an annotation that is not there': `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {missing: null}}}]}`,
  'a map that is not there, where a key of it is expected to be missing': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a}}]
expect: {host: [{metadata: {name: a-x-default-x-vc, labels: {missing: null}}}]}`,
  'nothing is created': `virtual:
  - ${WEB.trim().replaceAll('\n', '\n    ')}
  - {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}
expect:
  host: []
  skipped: [{kind: Endpoints, namespace: shop, name: web, reason: service has a selector}]`,
  'an error of a patch': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]
expect: {errors: [{patch: 1, contains: Cannot read properties}]}`,
  'errors of the same patch on two objects': `virtual:
  - {apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}
  - {apiVersion: v1, kind: Endpoints, metadata: {name: b, namespace: shop, labels: {broken: x}}}
expect:
  errors:
    - {object: {kind: Endpoints, namespace: shop, name: b}, patch: 1, path: metadata.labels.broken}
    - {object: {name: a}, contains: Cannot read properties}`,
  'an Event about a reference': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {tls: ca}}}]
expect: {events: [{reason: ReferenceNotFound, type: Warning, object: {name: a}, contains: default/ca}]}`,
  'no Event': `virtual: []
expect: {events: []}`,
  'the way back': `${VIRTUAL_WEB}
reverse: {expect: {virtual: [{metadata: {name: web, namespace: shop, annotations: {owner: shop}}}]}}`,
  'a change on the host comes back': `${VIRTUAL_WEB}
host:
  - apiVersion: v1
    kind: Endpoints
    metadata:
      name: web-x-shop-x-vc
      annotations: {vcluster.loft.sh/object-name: web, vcluster.loft.sh/object-namespace: shop, owner: team-billing}
      labels: {vcluster.loft.sh/managed-by: vc}
reverse: {expect: {virtual: [{metadata: {name: web, annotations: {owner: billing}}}]}}`,
  'a round trip': `${VIRTUAL_WEB}
roundTrip: true`,
};

const FAILS: Record<string, readonly [lines: string, wrong: object[]]> = {
  'an error of another object': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]
expect: {errors: [{object: {kind: EndpointSlice}, patch: 1}]}`,
    [
      { subject: 'error of patches[1]', expected: { object: { kind: 'EndpointSlice' }, patch: 1 } },
      { subject: 'error of patches[1]', actual: { object: { kind: 'Endpoints', name: 'a' }, patch: 1 } },
    ],
  ],
  'another value': [
    `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}}]}`,
    [{ path: 'metadata.annotations.owner', expected: 'shop', actual: 'team-shop' }],
  ],
  'a list of another length': [
    `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc}, subsets: []}]}`,
    [{ path: 'subsets', expected: [], actual: [{ ports: [{ port: 80 }] }] }],
  ],
  'an object that was not created, with those that were': [
    `${VIRTUAL_WEB}
expect: {host: [{kind: Endpoints, metadata: {name: other}}]}`,
    [{ subject: 'host Endpoints other', actual: ['Endpoints host/web-x-shop-x-vc'] }],
  ],
  'an object although none was expected': [
    `${VIRTUAL_WEB}
expect: {host: []}`,
    [{ expected: null, actual: { metadata: { name: 'web-x-shop-x-vc' } } }],
  ],
  'another reason': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: kubernetes, namespace: default}}]
expect: {skipped: [{name: kubernetes, reason: no service}]}`,
    [{ path: 'reason', expected: 'no service', actual: 'never synced' }],
  ],
  'an Event that is not there': [
    `${VIRTUAL_WEB}
expect: {events: [{reason: ReferenceNotFound}]}`,
    [
      {
        subject: 'event ReferenceNotFound',
        expected: { reason: 'ReferenceNotFound' },
        actual: ['Synced'],
      },
    ],
  ],
  'an Event that says something else': [
    `${VIRTUAL_WEB}
expect: {events: [{reason: Synced, contains: elsewhere}]}`,
    [{ subject: 'event Synced', actual: ['Synced'] }],
  ],
  'an error that no case expects': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]`,
    [
      {
        subject: 'error of patches[1]',
        expected: null,
        actual: { kind: 'runtime', path: 'metadata.labels.broken' },
      },
    ],
  ],
  'a reverse that does not undo the forward': [
    `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {owner: nobody}}}]
roundTrip: true`,
    [{ subject: 'round trip Endpoints default/a', expected: 'nobody', actual: 'none' }],
  ],
};

describe('an expectation', () => {
  const [holding, failing] = [Object.entries(HOLDS), Object.entries(FAILS)];
  let mismatches: JsonReport['cases'][0]['mismatches'][] = [];

  // All in one run: each run starts a sandbox.
  beforeAll(async () => {
    const texts = [...holding.map(([, lines]) => lines), ...failing.map(([, [lines]]) => lines)];
    const { out, err } = await capturedRun(['test', folderWith(casesOf(texts)), '-o', 'json']);
    if (err !== '') throw new Error(err);
    mismatches = (JSON.parse(out) as JsonReport).cases.map((one) => one.mismatches);
  });

  test.each(holding.map(([name], index) => [name, index] as const))('holds: %s', (_, index) => {
    expect(mismatches[index]).toEqual([]);
  });

  test.each(failing.map(([name, [, wrong]], index) => [name, index, wrong] as const))(
    'fails with both sides: %s',
    (_, index, wrong) => {
      expect(mismatches[holding.length + index]).toMatchObject(wrong);
    },
  );
});

const FAILING = oneCase(`${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}}]}`);

describe('test', () => {
  test('a failing case is exit 1, and the table shows expected and actual values', async () => {
    const { code, out } = await capturedRun(['test', folderWith(FAILING)]);
    expect(code).toBe(1);
    expect(out).toMatch(/ it +\d+ms +FAIL\n/);
    expect(out).toContain('host object web-x-shop-x-vc: metadata.annotations.owner\n');
    expect(out).toContain('    - expected: "shop"\n    + actual:   "team-shop"\n');
    expect(out).toContain('0 of 1 cases passed');
  });

  test('a reference to an object in no file is noted once, unless the case expects Events', async () => {
    const missing =
      'virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {tls: ca}}}]';
    const expecting = `${missing}\nexpect: {events: [{reason: ReferenceNotFound}]}`;
    const { code, err } = await capturedRun(['test', folderWith(casesOf([missing, expecting]))]);
    expect(code).toBe(0);
    expect(err).toMatch(
      /^note: .*endpoint-syncer-test\.yaml: it: Secret "default\/ca" is referenced and in no file of the case, [^\n]*\n$/u,
    );
  });

  test('EndpointSlices are synced with their own patches, in both directions', async () => {
    const path = folderWith({
      'config.yaml': `sync:
  toHost:
    endpointSlices:
      enabled: true
      patches:
        - path: endpoints[*].zone
          expression: '"host-" + value'
          reverseExpression: value.replace(/^host-/, "")
endpointSyncer: {name: vc, host: {namespace: host}}
`,
      'slice.yaml': `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1], zone: a}]
ports: []
`,
      'endpoint-syncer-test.yaml': `config: config.yaml
cases:
  - name: zone
    virtual: [slice.yaml]
    expect: {host: [{kind: EndpointSlice, metadata: {name: db-1-x-shop-x-vc}, endpoints: [{zone: host-a}]}]}
    roundTrip: true
  - name: not the zone of the host
    virtual: [slice.yaml]
    expect: {host: [{kind: EndpointSlice, endpoints: [{zone: a}]}]}
`,
    });
    const { out } = await capturedRun(['test', path]);
    expect(out).toMatch(/ zone +\d+ms +pass\n/);
    expect(out).toContain('1 of 2 cases passed');
    expect(out).toContain('    - expected: "a"\n    + actual:   "host-a"\n');
  });

  test('-o junit is XML in which every text is escaped', async () => {
    const path = folderWith({
      'a&b/endpoint-syncer-test.yaml': 'config: ../config.yaml\ncases: [{name: "<it>"}]\n',
      ...BASE,
    });
    const { code, out } = await capturedRun(['test', path, '-o', 'junit']);
    expect(code).toBe(0);
    expect(out).toContain('<testsuites name="endpoint-syncer test" tests="1" failures="0" errors="0">');
    expect(out).toMatch(/classname="[^"]*a&amp;b[^"]*" name="&lt;it&gt;"/);
    const failed = await capturedRun(['test', folderWith(FAILING), '-o', 'junit']);
    expect(failed.out).toMatch(/<failure message="[^"]+">[^<]*- expected: &quot;shop&quot;/);
  });

  test('--coverage names entries that never matched and branches that were never taken', async () => {
    const { code, out } = await capturedRun([
      'test',
      folderWith(oneCase(`${VIRTUAL_WEB}\nroundTrip: true`)),
      '--coverage',
      '-o',
      'json',
    ]);
    expect(code).toBe(0);
    expect((JSON.parse(out) as JsonReport).coverage?.[0]?.missed).toEqual([
      'patches[0] metadata.annotations.owner: virtual to host, branch never taken at 1:22: "none"',
      'patches[1] metadata.labels.broken: never matched',
      'patches[2] metadata.annotations.tls: never matched',
    ]);
  });

  test('--coverage counts a reference only where its name is found', async () => {
    const config = `sync:
  toHost:
    endpoints:
      patches:
        - {path: metadata.annotations, reference: {apiVersion: v1, kind: Secret, namePath: tls}}
        - {path: metadata.annotations, reference: {apiVersion: v1, kind: ConfigMap, namePath: settings}}
endpointSyncer: {name: vc, host: {namespace: host}}
`;
    const object = '{apiVersion: v1, kind: Endpoints, metadata: {name: web, annotations: {tls: a}}}';
    const files = { ...oneCase(`virtual: [${object}]\nroundTrip: true`), 'config.yaml': config };
    const { code, out } = await capturedRun(['test', folderWith(files), '--coverage', '-o', 'json']);
    expect(code).toBe(0);
    expect((JSON.parse(out) as JsonReport).coverage?.[0]).toMatchObject({
      patches: [
        { index: 0, directions: [{ matches: 1 }, { matches: 1 }] },
        { index: 1, directions: [{ matches: 0 }, { matches: 0 }] },
      ],
      missed: ['patches[1] metadata.annotations: never matched'],
    });
  });

  test('--coverage names what the filters of a path never decided', async () => {
    const config = `sync:
  toHost:
    endpoints:
      patches:
        - path: 'metadata.labels[?(context.path.endsWith("tier") ? @ !== "x" : false)]'
          expression: '"y"'
endpointSyncer: {name: vc, host: {namespace: host}}
`;
    const object = '{apiVersion: v1, kind: Endpoints, metadata: {name: web, labels: {tier: z}}}';
    const missedOf = async (virtual: string): Promise<readonly string[] | undefined> => {
      const files = { ...oneCase(`virtual: [${virtual}]\nroundTrip: true`), 'config.yaml': config };
      const { out } = await capturedRun(['test', folderWith(files), '--coverage', '-o', 'json']);
      return (JSON.parse(out) as JsonReport).coverage?.[0]?.missed;
    };
    const path = 'metadata.labels[?(context.path.endsWith("tier") ? @ !== "x" : false)]';
    expect(await missedOf(object)).toEqual([
      `patches[0] ${path}: branch of the filter never taken at 1:63: false`,
      `patches[0] ${path}: branch of the filter never taken at 1:19: a value is left out`,
    ]);
    const all = object.replace('{tier: z}', '{tier: z, app: x}');
    expect(await missedOf(all)).toEqual([]);
  });

  describe('--coverage of several kinds', () => {
    const files = {
      'config.yaml': `sync:
  toHost:
    endpoints:
      patches:
        - {path: metadata.labels.tier, expression: '"e-" + value'}
    endpointSlices:
      enabled: true
      patches:
        - {path: 'endpoints[*].hostname', expression: 'value === "a" ? "x" : value + "-y"'}
        - {path: 'endpoints[*].zone', reverseExpression: value}
endpointSyncer: {name: vc, host: {namespace: host}}
`,
      'endpoint-syncer-test.yaml': `config: config.yaml
cases:
  - name: a slice
    virtual:
      - apiVersion: discovery.k8s.io/v1
        kind: EndpointSlice
        metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
        addressType: IPv4
        endpoints: [{addresses: [10.0.0.1], hostname: a}, {addresses: [10.0.0.2], hostname: a}]
        ports: [{port: 80}]
`,
    };

    test('each entry is counted among those of its kind', async () => {
      const { code, out } = await capturedRun(['test', folderWith(files), '--coverage', '-o', 'json']);
      expect(code).toBe(0);
      expect((JSON.parse(out) as JsonReport).coverage?.[0]).toMatchObject({
        patches: [
          { kind: 'Endpoints', index: 0, directions: [{ direction: 'toHost', matches: 0 }] },
          {
            kind: 'EndpointSlice',
            index: 0,
            directions: [
              {
                direction: 'toHost',
                matches: 2,
                branches: [
                  { text: '"x"', isTaken: true },
                  { text: 'value + "-y"', isTaken: false },
                ],
              },
            ],
          },
          { kind: 'EndpointSlice', index: 1, directions: [{ direction: 'toVirtual', matches: 0 }] },
        ],
        missed: [
          'Endpoints patches[0] metadata.labels.tier: never matched',
          'EndpointSlice patches[0] endpoints[*].hostname: virtual to host, branch never taken at 1:23: value + "-y"',
          'EndpointSlice patches[1] endpoints[*].zone: never matched',
        ],
      });
    });

    test('the table names the kind only where more than one has patches', async () => {
      const several = await capturedRun(['test', folderWith(files), '--coverage']);
      expect(several.out).toMatch(/^CONFIG +KIND +ENTRY +TO HOST/mu);
      expect(several.out).toMatch(/ EndpointSlice +patches\[0\] +2 +- +1\/2 +endpoints\[\*\]\.hostname$/mu);
      const single = await capturedRun(['test', folderWith(oneCase(VIRTUAL_WEB)), '--coverage']);
      expect(single.out).toMatch(/^CONFIG +ENTRY +TO HOST/mu);
    });
  });

  test('--update replaces wrong expectations in place, and keeps comments and fields that were not compared', async () => {
    const files = oneCase(`${VIRTUAL_WEB} # one object
expect:
  host:
    # the copy
    - {metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}} # of web
    - {metadata: {name: gone}}
  skipped: []`);
    const path = folderWith(files);
    const { code, err } = await capturedRun(['test', path, '--update']);
    expect({ code, err }).toEqual({ code: 0, err: `updated ${join(path, 'endpoint-syncer-test.yaml')}\n` });
    const text = readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8');
    expect(text).toBe(
      files['endpoint-syncer-test.yaml']
        ?.replace('owner: shop', 'owner: team-shop')
        .replace(/ *- .*gone.*\n/, ''),
    );
    expect((await capturedRun(['test', path])).code).toBe(0);
    expect((await capturedRun(['test', path, '--update'])).err).toBe('');
  });

  test('--update corrects one expectation where cases share parts of them, and the inputs stay', async () => {
    const text = `config: config.yaml
cases:
  - name: one
    virtual:
      - &web
        apiVersion: v1
        kind: Endpoints
        metadata: {name: web, namespace: shop, labels: &labels {app: web}}
        subsets: []
    expect: &one
      host: [{kind: Endpoints, metadata: &metadata {name: web-x-shop-x-vc, labels: *labels}}]
  - name: two
    virtual: [{<<: *web, metadata: {name: web, namespace: shop, labels: {app: api}}}]
    expect: *one
  - name: three
    virtual: [{<<: *web, metadata: {name: web, namespace: shop, labels: {app: db}}}]
    expect:
      host: [{kind: Endpoints, metadata: {<<: *metadata}}]
`;
    const path = folderWith({ ...BASE, 'endpoint-syncer-test.yaml': text });
    expect((await capturedRun(['test', path])).code).toBe(1);
    const { code, err } = await capturedRun(['test', path, '--update']);
    expect({ code, err }).toEqual({ code: 0, err: `updated ${join(path, 'endpoint-syncer-test.yaml')}\n` });
    expect((await capturedRun(['test', path])).code).toBe(0);
    const { cases } = parse(readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8'), {
      merge: true,
    }) as { cases: { virtual: { metadata: { labels: { app: string } } }[] }[] };
    expect(cases.map(({ virtual }) => virtual[0]?.metadata.labels.app)).toEqual(['web', 'api', 'db']);
  });

  test('an object in the file itself may have null for its lists, as one in a file of objects', async () => {
    const path = folderWith(
      oneCase(`virtual:
  - {apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop, managedFields: null}, subsets: null}
expect:
  host: [{metadata: {name: web-x-shop-x-vc}, subsets: []}]`),
    );
    expect((await capturedRun(['test', path])).code).toBe(0);
  });

  test('--update fills in a case without expectations', async () => {
    const path = folderWith(oneCase(VIRTUAL_WEB));
    await capturedRun(['test', path, '--update']);
    const text = readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8');
    expect(text).toContain('name: web-x-shop-x-vc');
    expect(text).not.toContain('vcluster.loft.sh/');
    expect((await capturedRun(['test', path])).code).toBe(0);
  });

  test('folders are searched recursively, hidden ones and node_modules are not', async () => {
    const text = 'config: ../config.yaml\ncases: [{name: found}]\n';
    const path = folderWith({
      ...BASE,
      'a/x.endpoint-syncer-test.yaml': text,
      'b/other.yaml': text,
      'node_modules/endpoint-syncer-test.yaml': text,
      '.hidden/endpoint-syncer-test.yaml': text,
    });
    const { out } = await capturedRun(['test', path, '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({ passed: 1, failed: 0 });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['no test file', BASE, /^error: no \*endpoint-syncer-test\.yaml at or below /],
    [
      'an unknown key, with its place',
      oneCase('virtual: []\nexpected: {}'),
      /endpoint-syncer-test\.yaml:5:5: cases\[0\]\.expected: unknown key "expected", did you mean "expect"\?\n.*\n {4}\^\n/,
    ],
    [
      'an object that is none',
      oneCase('virtual: [{kind: Endpoints}]'),
      /cases\[0\]\.virtual\[0\]: an object of kind Endpoints has no metadata\.name/,
    ],
    [
      'a file that does not exist',
      oneCase('virtual: [none.yaml]'),
      /none\.yaml: cannot be read: there is no such file/,
    ],
    [
      'no configuration',
      { 'endpoint-syncer-test.yaml': 'cases: []\n' },
      /config: must be the path of a configuration file/,
    ],
  ])('%s is exit 2', async (_, files, message) => {
    const { code, out, err } = await capturedRun(['test', folderWith(files)]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  test('the examples pass, and their cases cover every entry and branch', async () => {
    const examples = join(import.meta.dirname, '..', '..', '..', 'config');
    const copy = mkdtempSync(join(folder, 'examples-'));
    cpSync(examples, copy, { recursive: true });
    const { code, out } = await capturedRun(['test', copy, '--coverage', '-o', 'json']);
    const report = JSON.parse(out) as JsonReport;
    expect(report.cases.flatMap(({ mismatches }) => mismatches)).toEqual([]);
    expect(report.coverage?.flatMap(({ missed }) => missed)).toEqual([]);
    expect(code).toBe(0);
    expect(report.passed).toBeGreaterThan(9);
  });
});

test('--watch runs again after a change of a test file, the configuration or an object', async () => {
  const path = folderWith(oneCase(HOLDS['a subset of the copy'] ?? ''));
  const child = spawn(process.execPath, [MAIN, 'test', path, '--watch', '-o', 'json'], { env: {} });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  // One change may cause more than one run.
  const lastReport = (): unknown => {
    const text = `{${out.split(/^\{$/mu).at(-1) ?? ''}`;
    return text.endsWith('}\n') ? (JSON.parse(text) as unknown) : undefined;
  };
  const reports = (counts: { passed: number; failed: number }): Promise<void> =>
    expect.poll(lastReport, { interval: 20 }).toMatchObject(counts);
  try {
    await reports({ passed: 1, failed: 0 });
    await expect.poll(() => err).toMatch(/\nwatching \d+ files, press Ctrl-C to stop\n/);
    writeFileSync(join(path, 'objects/web.yaml'), WEB.replace('owner: shop', 'owner: other'));
    await reports({ passed: 0, failed: 1 });
    writeFileSync(join(path, 'config.yaml'), CONFIG.replace('"team-" + value', '"team-shop"'));
    await reports({ passed: 1, failed: 0 });
    writeFileSync(join(path, 'endpoint-syncer-test.yaml'), 'config: config.yaml\ncases: []\n');
    await reports({ passed: 0, failed: 0 });
  } finally {
    child.kill('SIGINT');
  }
  await once(child, 'exit');
});

test('roundTrip does not compare lists of which a patch without a way back removes elements', async () => {
  const { code, out } = await capturedRun([
    'test',
    join(import.meta.dirname, '../../cases/world/values/roundtrip'),
  ]);
  expect(out).toContain('1 of 1 cases passed');
  expect(code).toBe(0);
});
