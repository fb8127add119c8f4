/** The copy of a Service that cannot be updated in place is created again, whatever is behind the Service by then. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { clustersAfter, object, rehearsed, type Clusters } from '../memory-world.ts';

const CONFIG = `
endpointSyncer: {name: vc, host: {namespace: host}, services: sync}
sync: {toHost: {endpointSlices: {enabled: false}}}
`;
const PORTS = [{ port: 80, protocol: 'TCP', targetPort: 80 }];
const HEADLESS = { clusterIP: 'None', clusterIPs: ['None'], ports: PORTS };
const WITH_ADDRESS = { clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'], ports: PORTS };
const IPV4 = { ...WITH_ADDRESS, ipFamilies: ['IPv4'] };
const IPV6 = { clusterIP: 'fd00::9', clusterIPs: ['fd00::9'], ipFamilies: ['IPv6'], ports: PORTS };

function serviceOf(spec: JsonObject, uid = 's', resourceVersion = '1'): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', ...object({ uid, resourceVersion }, { spec }) };
}

async function copyOf(
  virtual: readonly KubeObject[],
  host: Clusters['host'],
  endpoints: readonly KubeObject[],
) {
  const result = await rehearsed(
    { virtual: { Service: virtual, Endpoints: endpoints }, ...(host && { host }) },
    {},
    CONFIG,
  );
  return { result, host: clustersAfter(result).host };
}

describe.each<[string, JsonObject, JsonObject]>([
  ['becomes headless', WITH_ADDRESS, HEADLESS],
  ['is headless no longer', HEADLESS, WITH_ADDRESS],
  ['gets another IP family', IPV4, IPV6],
])('a Service that %s', (_, before, after) => {
  test.each([
    ['changed', 's', []],
    ['created again', 't', []],
    ['changed, with something behind it', 's', [object()]],
  ] as const)('has a copy again: %s', async (_how, uid, behind) => {
    const first = await copyOf([serviceOf(before)], undefined, [object()]);
    const [copy] = first.host.Service ?? [];
    expect(copy?.metadata.name).toBe('web-x-shop-x-vc');
    // As the host's API server would store it.
    const spec = {
      ...(copy?.['spec'] as JsonObject),
      ...(before === HEADLESS ? {} : { clusterIP: '10.9.9.9' }),
    };
    const host = { Service: [{ ...copy, spec } as KubeObject] };
    const next = await copyOf([serviceOf(after, uid, '2')], host, behind);
    const [again] = next.host.Service ?? [];
    expect(again?.metadata.name).toBe('web-x-shop-x-vc');
    expect(again?.metadata.uid).not.toBe(copy?.metadata.uid);
  });
});

test('a Service without anything behind it has no copy at first', async () => {
  expect((await copyOf([serviceOf(WITH_ADDRESS)], undefined, [])).host.Service).toEqual([]);
});
