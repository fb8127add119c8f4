/** Several groups may serve a kind of one name, such as Knative's Service: the offline commands tell their objects apart by the group. */

import { describe, expect, test } from 'vitest';
import { capturedRun } from '../captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';

const { write } = testFolder();

let files = 0;
const file = (...objects: readonly object[]): string =>
  write(`${files++}.yaml`, objects.map((one) => `${JSON.stringify(one)}\n`).join('---\n'));

const owner = [{ path: 'metadata.annotations["example.com/owner"]', expression: '"team-" + value' }];
const toHost = {
  endpoints: { patches: owner },
  endpointSlices: { enabled: true, patches: owner },
  services: { patches: owner },
};
const config = file({
  sync: { toHost },
  endpointSyncer: { name: 'vc', services: 'sync', host: { namespace: 'team-a' } },
});

const metadata = { namespace: 'shop', annotations: { 'example.com/owner': 'a' } };
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { ...metadata, name: 'web' },
  spec: { ports: [{ port: 80 }] },
};
const KINDS = {
  Endpoints: {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...metadata, name: 'web' },
    subsets: [{ addresses: [{ ip: '192.0.2.7' }], ports: [{ port: 8080 }] }],
  },
  EndpointSlice: {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.7'] }],
    ports: [{ name: 'http', port: 8080 }],
  },
  Service: service,
};

describe.each(Object.values(KINDS))('an object that is called $kind as well', (object) => {
  const { name } = object.metadata;
  const foreign = (of: object = {}): object => ({
    apiVersion: 'example.com/v1',
    kind: object.kind,
    metadata: { ...metadata, name, ...of },
    spec: { containers: [] },
  });

  test('changes nothing of what is rendered, on either side', async () => {
    const plain = await capturedRun(['render', '--config', config, '-f', file(object, service)]);
    expect(plain.code).toBe(0);
    for (const objects of [
      [object, service, foreign()],
      [foreign(), object, service],
    ])
      expect(await capturedRun(['render', '--config', config, '-f', file(...objects)])).toEqual(plain);

    const copy = { namespace: 'team-a', name: `${name}-x-shop-x-vc` };
    const host = file({ ...object, metadata: copy }, foreign(copy));
    const [alone, both] = await Promise.all(
      [[object], [object, foreign()]].map((objects) =>
        capturedRun(['render', '--config', config, '--reverse', '-f', host, '--virtual', file(...objects)]),
      ),
    );
    expect(both).toEqual(alone);
    const backAlone = file({ ...object, metadata: copy });
    expect(both).toEqual(
      await capturedRun([
        'render',
        '--config',
        config,
        '--reverse',
        '-f',
        backAlone,
        '--virtual',
        file(object),
      ]),
    );
  });

  test('is not synced, and has no patches of that kind', async () => {
    const rendered = await capturedRun(['render', '--config', config, '-f', file(foreign())]);
    expect(rendered).toMatchObject({
      code: 0,
      out: '',
      err: expect.stringContaining('nothing to render') as string,
    });
    const only = file({
      sync: { toHost: { services: { patches: owner }, endpointSlices: { enabled: true, patches: owner } } },
      endpointSyncer: { name: 'vc', services: 'sync', host: { namespace: 'team-a' } },
    });
    const { out } = await capturedRun(['patch', '--config', only, '-f', file(foreign())]);
    expect(out).toContain('example.com/owner: a');
  });

  test('changes nothing in a case', async () => {
    const report = async (...others: readonly object[]): Promise<string> => {
      const virtual = [...new Set([object, service, KINDS.Endpoints]), ...others];
      const expected = { host: [{ kind: object.kind, metadata: { name: `${name}-x-shop-x-vc` } }] };
      const cases = file({ config, cases: [{ name: 'one', virtual, expect: expected, roundTrip: true }] });
      const { out } = await capturedRun(['test', cases, '-o', 'json']);
      return JSON.stringify((JSON.parse(out) as { cases: { mismatches: unknown }[] }).cases[0]?.mismatches);
    };
    expect([await report(), await report(foreign())]).toEqual(['[]', '[]']);
  });
});

test('objects of two groups with one kind and one name are both imported', async () => {
  const GROUPS = ['networking.istio.io', 'gateway.networking.k8s.io'];
  const gateways = GROUPS.map((group) => ({
    apiVersion: `${group}/v1`,
    kind: 'Gateway',
    metadata: { namespace: 'shop', name: 'g' },
    spec: { group },
  }));
  const references = file({
    sync: {
      toHost: {
        customResources: Object.fromEntries(GROUPS.map((group) => [`gateways.${group}`, { enabled: true }])),
        endpoints: {
          patches: GROUPS.map((group, at) => ({
            path: `metadata.annotations.g${at}`,
            reference: { apiVersion: `${group}/v1`, kind: 'Gateway' },
          })),
        },
      },
    },
    endpointSyncer: { name: 'vc', host: { namespace: 'team-a' } },
  });
  const web = {
    ...KINDS.Endpoints,
    metadata: { namespace: 'shop', name: 'web', annotations: { g0: 'g', g1: 'g' } },
  };
  const args = ['render', '--config', references, '-o', 'json', '-f', file(web, ...gateways)];
  const { code, out, err } = await capturedRun(args);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const { items } = JSON.parse(out) as { items: { kind: string; spec?: { group: string } }[] };
  const imported = items.flatMap(({ kind, spec }) => (kind === 'Gateway' ? [spec?.group] : []));
  expect(new Set(imported)).toEqual(new Set(GROUPS));
  expect(imported).toHaveLength(GROUPS.length);
});
