/** Runs of the playground. */

import { afterAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { PlaygroundSession } from '../../src/showcase/playground-session.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { validConfig } from '../cli/config/setup.ts';

const CONFIG = validConfig('endpointSyncer: {name: my-vcluster, host: {namespace: team-a}}');

interface RunResult extends JsonObject {
  original: string;
  result: string;
  plainResult: string;
}

describe('a run', () => {
  const session = new PlaygroundSession(() => CONFIG);
  afterAll(() => session[Symbol.asyncDispose]());
  const run = async (body: JsonObject): Promise<RunResult> => (await session.run(body)) as RunResult; // its documented shape

  test('an error is shown in its editor, and the run is skipped', async () => {
    const result = await run({
      patches: '- path: a\n  expression: value +\n',
      virtual: 'kind: [',
      host: '- 1\n',
    });
    expect(result['problems']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ editor: 'patches', line: 2, severity: 'error' }),
        expect.objectContaining({ editor: 'virtual', line: 1 }),
        expect.objectContaining({ editor: 'host' }),
      ]),
    );
    expect(result.result).toBeUndefined();
  });

  const SLICE = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1], hostname: a}]
`;
  const HOSTNAMES = `- path: endpoints[*].hostname
  expression: value + "-" + context.vcluster.name
  reverseExpression: value.replace(/-my-vcluster$/, "")
`;
  const SERVICE =
    '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}\n';

  test('a patch that fails is left out of the result, and every failing one is traced', async () => {
    const { plainResult, notes, traces } = await run({
      patches: `- path: endpoints[*].hostname
  expression: value.nope()
- path: metadata.labels.a
  expression: value.nope()
- path: endpoints[*].addresses
  expression: '["10.9.9.9"]'
`,
      virtual: SLICE.replace('labels: {', 'labels: {a: b, '),
    });
    expect(parse(plainResult)).toEqual(expect.objectContaining({ endpoints: [{ addresses: ['10.9.9.9'] }] }));
    const text = (index: number): string =>
      `patches[${index}] fails on EndpointSlice team-a/web-1-x-shop-x-my-vcluster: the daemon leaves out its path; the error is in the trace`;
    expect(notes).toEqual([0, 1].map((index) => ({ level: 'error', text: text(index) })));
    expect(traces).toMatchObject([{ patches: [{ error: {} }, { error: {} }, { index: 2 }] }]);
  });

  test('a loop is stopped in every run, and never quarantined', async () => {
    const input = { patches: '- path: endpoints[*].hostname\n  expression: while (true) { value }\n' };
    for (const virtual of [SLICE, SLICE.replace('10.0.0.1', '10.0.0.2')]) {
      const { traces, notes } = await run({ ...input, virtual });
      expect(traces).toMatchObject([
        { patches: [{ error: { kind: 'timeout', message: 'took longer than 100 ms' } }] },
      ]);
      expect(JSON.stringify(notes)).not.toContain('quarantine');
    }
  });

  test('the result has the order of the virtual object, and no managed fields', async () => {
    const metadata =
      '{labels: {z: "1", a: "2"}, namespace: shop, managedFields: [{manager: m}], name: web-1}';
    const virtual = SLICE.replace(/metadata: .*/u, `metadata: ${metadata}`);
    const { plainResult, original } = await run({
      patches: '[]',
      virtual: virtual.replace('addressType: IPv4\n', '') + 'addressType: IPv4\n',
    });
    const keys = (text: string): string[] => text.match(/^ {0,4}\w+(?=:)/gmu) ?? [];
    expect(keys(plainResult)).toEqual(keys(original));
    expect(`${plainResult}${original}`).not.toContain('managedFields');
  });

  test('a list of patches is for the kind of the object, and checked for that kind', async () => {
    const { patchList, problems, plainResult, original, paths, notes } = await run({
      patches: `${HOSTNAMES}- path: subsets[*].ports\n  expression: value\n`,
      virtual: `${SERVICE}---\n${SLICE}`,
    });
    expect({ patchList, notes }).toEqual({ patchList: 'endpointSlices', notes: [] });
    expect(problems).toMatchObject([
      {
        editor: 'patches',
        line: 4,
        severity: 'warning',
        message: expect.stringContaining('EndpointSlice') as string,
      },
    ]);
    expect(parse(plainResult)).toMatchObject({
      kind: 'EndpointSlice',
      metadata: { name: 'web-1-x-shop-x-my-vcluster', namespace: 'team-a' },
      endpoints: [{ hostname: 'a-my-vcluster' }],
    });
    expect(parse(original)).toMatchObject({ metadata: { name: 'web-1' } });
    expect(paths).toContain('endpoints[*].hostname');
  });

  test('a slice comes back in the reverse direction', async () => {
    const there = await run({ patches: HOSTNAMES, virtual: SLICE });
    const host = there.result.replace('a-my-vcluster', 'b-my-vcluster');
    const back = await run({ patches: HOSTNAMES, virtual: SLICE, host, isReverse: true });
    expect(parse(back.plainResult)).toMatchObject({
      kind: 'EndpointSlice',
      metadata: { name: 'web-1' },
      endpoints: [{ hostname: 'b' }],
    });
  });

  test('a configuration says which kinds are synced, with which patches and names', async () => {
    const patches = `sync:
  toHost:
    endpointSlices: {enabled: true, patches: [{path: 'endpoints[*].hostname', expression: context.vcluster.name + value}]}
endpointSyncer: {name: other, services: sync}
`;
    const { patchList, result, traces } = await run({ patches, virtual: `${SLICE}---\n${SERVICE}` });
    expect(patchList).toBeNull();
    const objects = parseAllDocuments(result).map((document) => document.toJS() as unknown);
    expect(objects).toMatchObject([
      {
        kind: 'EndpointSlice',
        metadata: { name: 'web-1-x-shop-x-other', namespace: 'team-a' },
        endpoints: [{ hostname: 'othera' }],
      },
      { kind: 'Service', metadata: { name: 'web-x-shop-x-other' } },
    ]);
    expect(traces).toMatchObject([
      { object: 'EndpointSlice team-a/web-1-x-shop-x-other', patches: [{ index: 0 }] },
      { object: 'Service team-a/web-x-shop-x-other', patches: [] },
    ]);
  });

  test('a mistake in a configuration is shown at its place', async () => {
    const patches = 'sync:\n  toHost:\n    endpointSlices:\n      enabled: perhaps\n';
    expect((await run({ patches, virtual: SLICE }))['problems']).toMatchObject([
      { editor: 'patches', line: 4, severity: 'error' },
    ]);
  });

  test.each([
    [
      'a kind that is never synced',
      '[]',
      '{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}',
      'ConfigMap shop/web is not synced: ConfigMap is not a kind that endpoint-syncer syncs; this configuration syncs Endpoints, EndpointSlice',
    ],
    [
      'a kind that is switched off',
      'sync: {toHost: {endpointSlices: {enabled: false}}}',
      SLICE,
      'EndpointSlice shop/web-1 is not synced: sync.toHost.endpointSlices.enabled is false',
    ],
    [
      'Services of vCluster',
      '[]',
      SERVICE,
      'Service shop/web is not synced: endpointSyncer.services is vcluster',
    ],
    ['nothing', '[]', '', 'there is no object to sync: paste an object of kind Endpoints or EndpointSlice'],
  ])('%s is a sentence', async (_, patches, virtual, text) => {
    const { notes, result, problems } = await run({ patches, virtual });
    expect({ notes, result, problems }).toEqual({
      notes: [{ level: expect.any(String) as string, text }],
      result: '',
      problems: [],
    });
  });
});
