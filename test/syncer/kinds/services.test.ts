/** Translation, recreation and status of Service copies. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';
import { OBJECT_UID } from '../../../src/syncer/translate/bookkeeping.ts';
import { needsWrite } from '../../../src/syncer/translate/content.ts';
import { translators } from '../translate/setup.ts';

const { names } = translators();
const hasSyncedEndpoints = ({ metadata }: KubeObject): boolean => metadata.name === 'db';
const kind = createServiceKind({ hasSyncedEndpoints, allow: [] });

function service(spec: JsonObject, status: JsonObject = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'db', namespace: 'shop' }, spec, status };
}

function copied(virtual: JsonObject, host?: JsonObject): JsonObject {
  const place = { names, host: host && service(host) };
  return kind.content.toHost(service(virtual), place)['spec'] as JsonObject; // the kind's only member
}

const PORT = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 };

describe('the spec of a copy', () => {
  test.each<[string, JsonObject, JsonObject | undefined, JsonObject]>([
    [
      'has no cluster IP or node port of the virtual cluster',
      {
        type: 'NodePort',
        clusterIP: '10.1.1.1',
        clusterIPs: ['10.1.1.1'],
        ports: [{ ...PORT, nodePort: 30_001 }],
      },
      undefined,
      { type: 'NodePort', sessionAffinity: 'None', ports: [PORT] },
    ],
    [
      'keeps what the host has allocated, ports found by number and protocol',
      {
        type: 'LoadBalancer',
        ports: [
          { ...PORT, name: 'web' },
          { ...PORT, name: 'alt', port: 81 },
        ],
      },
      {
        type: 'LoadBalancer',
        clusterIP: '10.9.9.9',
        clusterIPs: ['10.9.9.9'],
        ipFamilies: ['IPv6'],
        internalTrafficPolicy: 'Cluster',
        ports: [{ ...PORT, nodePort: 31_000 }],
      },
      {
        type: 'LoadBalancer',
        sessionAffinity: 'None',
        clusterIP: '10.9.9.9',
        clusterIPs: ['10.9.9.9'],
        ipFamilies: ['IPv6'],
        internalTrafficPolicy: 'Cluster',
        ports: [
          { ...PORT, name: 'web', nodePort: 31_000 },
          { ...PORT, name: 'alt', port: 81 },
        ],
      },
    ],
    [
      'loses what the new type does not have',
      { type: 'ClusterIP', ports: [PORT] },
      {
        type: 'LoadBalancer',
        clusterIP: '10.9.9.9',
        allocateLoadBalancerNodePorts: true,
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: 32_000,
        loadBalancerClass: 'x',
        ports: [{ ...PORT, nodePort: 31_000 }],
      },
      { type: 'ClusterIP', sessionAffinity: 'None', clusterIP: '10.9.9.9', ports: [PORT] },
    ],
    [
      'is headless where the virtual one is, with its families',
      { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv6', 'IPv4'], ports: [PORT] },
      { clusterIP: '10.9.9.9', clusterIPs: ['10.9.9.9'], ipFamilies: ['IPv4'], ports: [PORT] },
      {
        type: 'ClusterIP',
        sessionAffinity: 'None',
        clusterIP: 'None',
        clusterIPs: ['None'],
        ipFamilies: ['IPv6', 'IPv4'],
        ports: [PORT],
      },
    ],
    [
      'of an ExternalName has no cluster IP and no selector',
      { type: 'ExternalName', externalName: 'a.example.com', selector: { app: 'x' } },
      { type: 'ClusterIP', clusterIP: '10.9.9.9', clusterIPs: ['10.9.9.9'], ipFamilies: ['IPv4'] },
      { type: 'ExternalName', sessionAffinity: 'None', externalName: 'a.example.com', ports: [] },
    ],
    [
      'loses what was removed, and keeps fields that this program does not know',
      { ports: [PORT], future: { a: 1 } },
      { ports: [PORT], externalIPs: ['1.2.3.4'], loadBalancerSourceRanges: ['10.0.0.0/8'], defaulted: true },
      { type: 'ClusterIP', sessionAffinity: 'None', ports: [PORT], future: { a: 1 }, defaulted: true },
    ],
    [
      'has the health check port only with the policy Local',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster', ports: [PORT] },
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32_000, ports: [PORT] },
      { type: 'LoadBalancer', sessionAffinity: 'None', externalTrafficPolicy: 'Cluster', ports: [PORT] },
    ],
    [
      'has no addresses that the tenant chose, and no policy that only they permit',
      { type: 'ClusterIP', externalIPs: ['203.0.113.1'], externalTrafficPolicy: 'Local', ports: [PORT] },
      { type: 'ClusterIP', externalIPs: ['203.0.113.1'], externalTrafficPolicy: 'Local', ports: [PORT] },
      { type: 'ClusterIP', sessionAffinity: 'None', ports: [PORT] },
    ],
    [
      'has no address of a load balancer that the tenant chose',
      { type: 'LoadBalancer', loadBalancerIP: '203.0.113.1', externalTrafficPolicy: 'Local', ports: [PORT] },
      undefined,
      { type: 'LoadBalancer', sessionAffinity: 'None', externalTrafficPolicy: 'Local', ports: [PORT] },
    ],
  ])('%s', (_what, virtual, host, expected) => {
    expect(copied(virtual, host)).toEqual(expected);
  });

  test('has the addresses that endpointSyncer.services.allow permits', () => {
    const spec = {
      type: 'LoadBalancer',
      loadBalancerIP: '203.0.113.1',
      externalIPs: ['203.0.113.2'],
      ports: [],
    };
    const allowing = (...allow: ('externalIPs' | 'loadBalancerIP')[]): JsonObject =>
      createServiceKind({ hasSyncedEndpoints, allow }).content.toHost(service(spec), {
        names,
        host: undefined,
      })['spec'] as JsonObject; // the kind's only member
    expect(allowing('externalIPs')).toMatchObject({ externalIPs: ['203.0.113.2'] });
    expect(allowing('externalIPs')).not.toHaveProperty('loadBalancerIP');
    expect(allowing('externalIPs', 'loadBalancerIP')).toMatchObject(spec);
  });

  test.each([
    ['of this object, keeps the class that the host has set', 'u-1', { loadBalancerClass: 'host' }],
    ['of an earlier object, loses the class that it had', 'u-0', {}],
  ])('%s', (_what, uid, expected) => {
    const virtual = service({ type: 'LoadBalancer' });
    const host = service({ type: 'LoadBalancer', loadBalancerClass: 'host' });
    const spec = kind.content.toHost(
      { ...virtual, metadata: { ...virtual.metadata, uid: 'u-1' } },
      { names, host: { ...host, metadata: { ...host.metadata, annotations: { [OBJECT_UID]: uid } } } },
    )['spec'];
    expect(spec).toEqual({ type: 'LoadBalancer', sessionAffinity: 'None', ports: [], ...expected });
  });

  test('defaults of an API server are not a difference, a disabled node port is one', () => {
    const isSame = (a: JsonObject, b: JsonObject): boolean =>
      !needsWrite(service(a), service(b), kind.content);
    expect(
      isSame(
        { ports: [{ port: 80 }] },
        {
          type: 'ClusterIP',
          sessionAffinity: 'None',
          publishNotReadyAddresses: false,
          ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
        },
      ),
    ).toBe(true);
    expect(isSame({ allocateLoadBalancerNodePorts: false }, {})).toBe(false);
    expect(isSame({ sessionAffinity: 'ClientIP' }, {})).toBe(false);
  });
});

describe('which Services are synced', () => {
  test.each<[string, JsonObject, string | undefined]>([
    ['db', {}, undefined],
    ['other', {}, 'no synced endpoints'],
    ['db', { selector: { app: 'x' } }, 'selects Pods'],
    ['other', { type: 'ExternalName', selector: { app: 'x' } }, undefined],
  ])('%s with %o: %s', (name, spec, reason) => {
    const object = { ...service(spec), metadata: { name, namespace: 'shop' } };
    expect(kind.gate(object, undefined, { requireService: true })).toBe(reason);
  });
});

describe('recreation', () => {
  test.each<[string, JsonObject, JsonObject, boolean]>([
    ['headless or not', { clusterIP: 'None' }, { clusterIP: '10.0.0.1' }, true],
    ['from ExternalName', { clusterIP: 'None' }, { type: 'ExternalName' }, false],
    [
      'the first family',
      { clusterIP: 'None', ipFamilies: ['IPv6'] },
      { clusterIP: 'None', ipFamilies: ['IPv4'] },
      true,
    ],
    [
      'the class of a load balancer',
      { type: 'LoadBalancer', loadBalancerClass: 'a' },
      { type: 'LoadBalancer' },
      true,
    ],
    ['a class with the type', { type: 'LoadBalancer', loadBalancerClass: 'a' }, { type: 'ClusterIP' }, false],
    ['ports', { ports: [PORT] }, { ports: [] }, false],
  ])('%s', (_what, wanted, actual, isNeeded) => {
    expect(kind.needsRecreation(service(wanted), service(actual))).toBe(isNeeded);
  });
});

describe('the status', () => {
  const balanced = (ingress: JsonObject[]): JsonObject => ({
    loadBalancer: ingress.length > 0 ? { ingress } : {},
  });
  const of = (type: string, ...ingress: JsonObject[]): KubeObject => service({ type }, balanced(ingress));
  const [a, b] = [{ ip: '1.1.1.1' }, { ip: '2.2.2.2' }];

  test.each<[string, KubeObject, KubeObject | undefined, JsonObject | undefined]>([
    ['arrives', of('LoadBalancer'), of('LoadBalancer', a), { status: { loadBalancer: { ingress: [a] } } }],
    ['changes', of('LoadBalancer', b), of('LoadBalancer', a), { status: { loadBalancer: { ingress: [a] } } }],
    ['is in step', of('LoadBalancer', a), of('LoadBalancer', a), undefined],
    [
      'goes on the host',
      of('LoadBalancer', a),
      of('LoadBalancer'),
      { status: { loadBalancer: { ingress: null } } },
    ],
    ['goes with the copy', of('LoadBalancer', a), undefined, { status: { loadBalancer: { ingress: null } } }],
    ['of another type is left alone', of('ClusterIP'), of('LoadBalancer', a), undefined],
  ])('%s', (_what, virtual, host, patch) => {
    expect(kind.statusPatch(virtual, host)).toEqual(patch);
  });
});
