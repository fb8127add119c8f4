/** `test --coverage`: entries that never matched, and branches that were never taken. */

import { rmSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { capturedRun } from '../../cli/captured-run.ts';
import { type JsonReport, VIRTUAL_WEB, folder, folderWith, oneCase } from '../../cli/test/case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Of the one configuration, all of whose cases pass. */
async function coverageOf(files: Record<string, string>): Promise<{ missed: string[] } | undefined> {
  const { code, out } = await capturedRun(['test', folderWith(files), '--coverage', '-o', 'json']);
  expect(code).toBe(0);
  return (JSON.parse(out) as JsonReport).coverage?.[0];
}

describe('--coverage', () => {
  test('--coverage names entries that never matched and branches that were never taken', async () => {
    const files = oneCase(`${VIRTUAL_WEB}\nroundTrip: true`);
    expect((await coverageOf(files))?.missed).toEqual([
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
    expect(await coverageOf(files)).toMatchObject({
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
      return (await coverageOf(files))?.missed;
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
      expect(await coverageOf(files)).toMatchObject({
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
});
