/** Translation, recreation and status of Service copies. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import type { NamespaceMode } from '../../../src/syncer/translate/types.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';
import { virtualPatch } from '../../../src/syncer/reconcile/copy.ts';
import { OBJECT_UID } from '../../../src/syncer/translate/bookkeeping.ts';
import { needsWrite } from '../../../src/syncer/translate/content.ts';
import { translateDnsName } from '../translate/dns.ts';
import { BASE as base, hasSyncedEndpoints, kind, PORT, service } from './service-setup.ts';
import { LEGACY, mappings, SINGLE, translators } from '../translate/setup.ts';

const { names } = translators();

const CLUSTER_IP = { type: 'ClusterIP', sessionAffinity: 'None' };
const HOST_IP = { clusterIP: '10.9.9.9', clusterIPs: ['10.9.9.9'] };
const HOST_IPS = {
  clusterIP: '10.9.9.9',
  clusterIPs: ['10.9.9.9', 'fd00::9'],
  ipFamilies: ['IPv4', 'IPv6'],
};
const HEADLESS = { clusterIP: 'None', clusterIPs: ['None'] };

function copied(virtual: JsonObject, host?: JsonObject): JsonObject {
  const place = { names, host: host && service(host) };
  return kind.content.toHost(service(virtual), place)['spec'] as JsonObject; // the kind's only member
}

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
        ...HOST_IP,
        ipFamilies: ['IPv6'],
        internalTrafficPolicy: 'Cluster',
        ports: [{ ...PORT, nodePort: 31_000 }],
      },
      {
        type: 'LoadBalancer',
        sessionAffinity: 'None',
        ...HOST_IP,
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
      { ...CLUSTER_IP, clusterIP: '10.9.9.9', ports: [PORT] },
    ],
    [
      'is headless where the virtual one is, with its families',
      { ...HEADLESS, ipFamilies: ['IPv6', 'IPv4'], ports: [PORT] },
      { ...HOST_IP, ipFamilies: ['IPv4'], ports: [PORT] },
      { ...CLUSTER_IP, ...HEADLESS, ipFamilies: ['IPv6', 'IPv4'], ports: [PORT] },
    ],
    [
      'has the IP family of the virtual one on a host of both',
      { clusterIP: 'fd00::9', ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'], ports: [PORT] },
      undefined,
      { ...CLUSTER_IP, ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'], ports: [PORT] },
    ],
    [
      'keeps the second family that the host gives where it is preferred',
      { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'], ports: [PORT] },
      { ...HOST_IPS, ports: [PORT] },
      { ...CLUSTER_IP, ipFamilyPolicy: 'PreferDualStack', ...HOST_IPS, ports: [PORT] },
    ],
    [
      'asks for the first family alone where the second is preferred: the host may not have it',
      { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'], ports: [PORT] },
      undefined,
      { ...CLUSTER_IP, ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'], ports: [PORT] },
    ],
    [
      'loses the second family, and its address, with the virtual one',
      { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'], ports: [PORT] },
      { ...HOST_IPS, ports: [PORT] },
      { ...CLUSTER_IP, ipFamilyPolicy: 'SingleStack', ...HOST_IP, ipFamilies: ['IPv4'], ports: [PORT] },
    ],
    [
      'of an ExternalName has no cluster IP and no selector',
      { type: 'ExternalName', externalName: 'a.example.com', selector: { app: 'x' } },
      { type: 'ClusterIP', ...HOST_IP, ipFamilies: ['IPv4'] },
      { type: 'ExternalName', sessionAffinity: 'None', externalName: 'a.example.com', ports: [] },
    ],
    [
      'loses what was removed, and keeps fields that this program does not know',
      { ports: [PORT], future: { a: 1 } },
      { ports: [PORT], externalIPs: ['1.2.3.4'], loadBalancerSourceRanges: ['10.0.0.0/8'], defaulted: true },
      { ...CLUSTER_IP, ports: [PORT], future: { a: 1 }, defaulted: true },
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
      { ...CLUSTER_IP, ports: [PORT] },
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
      createServiceKind({ hasSyncedEndpoints, neverCopied: () => undefined, allow }).content.toHost(
        service(spec),
        {
          names,
          host: undefined,
        },
      )['spec'] as JsonObject; // the kind's only member
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
          ...CLUSTER_IP,
          publishNotReadyAddresses: false,
          ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
        },
      ),
    ).toBe(true);
    expect(isSame({ allocateLoadBalancerNodePorts: false }, {})).toBe(false);
    expect(isSame({ sessionAffinity: 'ClientIP' }, {})).toBe(false);
  });

  test('what an API server leaves out of a read, and not of a watch, is no difference', () => {
    const read = { type: 'ExternalName', externalName: 'a.example.com', sessionAffinity: 'None' };
    for (const internalTrafficPolicy of ['Cluster', 'Local']) {
      const watched = service({ ...read, internalTrafficPolicy });
      const wanted = kind.content.toHost(watched, { names, host: undefined });
      expect(needsWrite({ ...watched, ...wanted }, service(read), kind.content)).toBe(false);
      expect(needsWrite(service(read), watched, kind.content)).toBe(false);
      const answering = service({ ...CLUSTER_IP, internalTrafficPolicy });
      expect(needsWrite(answering, service(CLUSTER_IP), kind.content)).toBe(true);
    }
  });
});

describe('the externalName of a copy', () => {
  const named = (externalName: string, mode?: NamespaceMode): JsonValue | undefined => {
    const place = { names: translators(mode).names, host: undefined };
    const virtual = service({ type: 'ExternalName', externalName });
    const spec = kind.content.toHost(virtual, place)['spec'] as JsonObject; // the kind's only member
    return spec['externalName'];
  };
  const onHost = names.toHost({ namespace: 'shop', name: 'db' });
  const host = `${onHost?.name}.${onHost?.namespace}`;

  test.each([
    ['db.shop.svc', `${host}.svc`],
    ['db.shop.svc.', `${host}.svc.`],
    ['db.shop.svc.cluster.local', `${host}.svc.cluster.local`],
    ['db-0.db.shop.svc.cluster.local', `db-0.${host}.svc.cluster.local`],
    ['kubernetes.default.svc', `${names.vcluster}.${names.hostNamespace}.svc`],
  ])('%s is the name of the host Service, %s', (virtual, expected) => {
    expect(named(virtual)).toBe(expected);
  });

  test.each([
    'example.com',
    'db.shop',
    'db.svc',
    'www.example.com',
    'svc.example.com',
    'a.b.c.d.svc',
    `${'n'.repeat(64)}.shop.svc`,
    '10.0.0.1',
    '',
  ])('%j names no Service, so it stays', (name) => {
    expect(named(name)).toBe(name);
  });

  test('in a namespace that is not mapped prevents the copy', () => {
    const { names: mapped } = translators(mappings({ shop: 'team-shop' }, true));
    const unmapped = (spec: JsonObject): unknown => kind.unmappedNamespace?.(service(spec), mapped);
    const type = 'ExternalName';
    expect(unmapped({ type, externalName: 'db.other.svc' })).toEqual({
      namespace: 'other',
      path: 'spec.externalName',
    });
    expect(unmapped({ type, externalName: 'db.shop.svc' })).toBeUndefined();
    expect(unmapped({ type, externalName: 'db.other' })).toBeUndefined();
    expect(unmapped({ externalName: 'db.other.svc' })).toBeUndefined();
    expect(kind.unmappedNamespace?.(service({ type, externalName: 'db.other.svc' }), names)).toBeUndefined();
  });

  test('is that which an expression gets from virtualToHostDNS', () => {
    const modes = [SINGLE, LEGACY, mappings({ 'team-*': 'h-*', shop: 'h-shop' })];
    const label = fc.oneof(
      fc.constantFrom('svc', 'default', 'kubernetes', 'team-a', 'shop', 'n'.repeat(63), 'n'.repeat(64)),
      fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/),
    );
    const dnsName = fc
      .tuple(
        fc.array(label, { minLength: 1, maxLength: 4 }),
        fc.constantFrom('', '.svc', '.svc.a.b', '.svc.'),
      )
      .map(([labels, end]) => labels.join('.') + end);
    fc.assert(
      fc.property(dnsName, fc.constantFrom(...modes), (text, mode) => {
        const isService = text.split('.').slice(2, 4).includes('svc');
        const translated = isService ? translateDnsName(text, translators(mode).names) : undefined;
        expect(named(text, mode)).toBe(translated ?? text);
      }),
      { numRuns: 500 },
    );
  });
});

describe('which Services are synced', () => {
  test.each<[string, JsonObject, string | undefined]>([
    ['db', {}, undefined],
    ['other', {}, 'no synced endpoints'],
    ['db', { selector: { app: 'x' } }, 'selects Pods'],
    ['other', { type: 'LoadBalancer' }, undefined],
    ['other', { type: 'LoadBalancer', selector: { app: 'x' } }, 'selects Pods'],
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
    const [next, now] = [service(wanted), service(actual)];
    expect(kind.recreationOf(next, now, next)).toBe(isNeeded ? 'always' : 'never');
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

describe('the address of a copy', () => {
  const ports = [PORT, { port: 53, protocol: 'UDP', nodePort: 30_053 }];

  test.each<[string, JsonObject, JsonObject[], string[], string[]]>([
    ['cluster IP', { clusterIP: '10.9.9.9', ports: [PORT] }, [], ['10.9.9.9'], ['80/TCP']],
    [
      'dual stack',
      { clusterIP: '10.9.9.9', clusterIPs: ['10.9.9.9', 'fd00::9'], ports: [] },
      [],
      ['10.9.9.9', 'fd00::9'],
      [],
    ],
    ['headless', { ...HEADLESS, ports: [PORT] }, [], ['None'], ['80/TCP']],
    [
      'node port',
      { type: 'NodePort', clusterIP: '10.9.9.9', ports },
      [],
      ['10.9.9.9'],
      ['80/TCP', '53:30053/UDP'],
    ],
    [
      'load balancer',
      { type: 'LoadBalancer', clusterIP: '10.9.9.9', externalIPs: ['203.0.113.9'], ports: [{ port: 80 }] },
      [{ ip: '203.0.113.7' }, { hostname: 'lb.example.com' }, {}],
      ['10.9.9.9', '203.0.113.9', '203.0.113.7', 'lb.example.com'],
      ['80/TCP'],
    ],
    [
      'name',
      { type: 'ExternalName', externalName: 'a.example.com', clusterIP: '10.9.9.9' },
      [],
      ['a.example.com'],
      [],
    ],
    ['none yet', { clusterIP: '', ports: 'x' }, [], [], []],
  ])('%s', (_what, spec, ingress, addresses, expected) => {
    const copy = service(spec, { loadBalancer: { ingress } });
    expect(kind.addressOf?.(copy)).toEqual({ addresses, ports: expected });
  });
});

describe('a patched copy', () => {
  const settled = (patched: JsonObject, host?: JsonObject): JsonObject =>
    kind.content.afterPatches?.(service(patched), service({}), host && service(host))['spec'] as JsonObject; // the kind's only member

  test.each<[string, JsonObject, JsonObject | undefined, JsonObject]>([
    [
      'gets the node ports and policies of the host with a new type, by name where the number is another',
      { ...base, type: 'NodePort', ports: [{ ...PORT, port: 1080 }] },
      { type: 'NodePort', externalTrafficPolicy: 'Cluster', ports: [{ ...PORT, nodePort: 30_001 }] },
      {
        type: 'NodePort',
        sessionAffinity: 'None',
        externalTrafficPolicy: 'Cluster',
        ports: [{ ...PORT, port: 1080, nodePort: 30_001 }],
      },
    ],
    [
      'loses what belongs to the earlier type',
      {
        type: 'ClusterIP',
        allocateLoadBalancerNodePorts: true,
        externalTrafficPolicy: 'Local',
        loadBalancerClass: 'x',
        loadBalancerSourceRanges: ['10.0.0.0/8'],
        ports: [{ ...PORT, nodePort: 30_001 }],
      },
      undefined,
      { ...CLUSTER_IP, ports: [PORT] },
    ],
    [
      'loses the addresses of the host as an ExternalName',
      { ...base, type: 'ExternalName', externalName: 'a', ipFamilyPolicy: 'SingleStack', ports: [] },
      { ...base, internalTrafficPolicy: 'Cluster' },
      { type: 'ExternalName', sessionAffinity: 'None', externalName: 'a', ports: [] },
    ],
    [
      'keeps the addresses of the host, which a patch of the whole spec has dropped',
      { ports: [PORT] },
      base,
      { ...base, ports: [PORT] },
    ],
    [
      'has a timeout only with an affinity',
      { sessionAffinity: 'None', sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } }, ports: [PORT] },
      undefined,
      { ...CLUSTER_IP, ports: [PORT] },
    ],
  ])('%s', (_what, patched, host, expected) => {
    expect(settled(patched, host)).toEqual(expected);
    expect(settled(expected, host)).toEqual(expected);
  });

  test('does not give two ports one node port', () => {
    const host = {
      type: 'NodePort',
      ports: [
        { name: 'a', port: 80, nodePort: 1 },
        { name: 'b', port: 81, nodePort: 2 },
      ],
    };
    const patched = {
      type: 'NodePort',
      ports: [
        { name: 'a', port: 81 },
        { name: 'b', port: 82 },
      ],
    };
    expect(settled(patched, host)['ports']).toEqual([
      { name: 'a', port: 81, nodePort: 2 },
      { name: 'b', port: 82 },
    ]);
  });
});

describe('the way back', () => {
  const back = (host: JsonObject, virtual: JsonObject): JsonValue =>
    kind.content.toVirtual(service(host), { names, namespace: 'shop', original: service(virtual) })['spec'] ??
    null;

  test('keeps what the virtual cluster allocates, and what the copy does not get', () => {
    const virtual = {
      type: 'NodePort',
      clusterIP: '10.1.1.1',
      externalIPs: ['1.2.3.4'],
      selector: { app: 'x' },
      ports: [{ ...PORT, nodePort: 31_000 }],
    };
    const host = {
      type: 'NodePort',
      clusterIP: '10.9.9.9',
      ports: [{ ...PORT, targetPort: 9, nodePort: 32_000 }],
    };
    expect(back(host, virtual)).toEqual({
      ...virtual,
      ports: [{ ...PORT, targetPort: 9, nodePort: 31_000 }],
    });
  });

  test('leaves a virtual name that leads to a Service as it is', () => {
    const type = 'ExternalName';
    const after = (from: string, to: string): JsonValue =>
      back({ type, externalName: to }, { type, externalName: from });
    const copy = names.toHost({ namespace: 'shop', name: 'db' });
    expect(after('db.shop.svc', `${copy?.name}.${copy?.namespace}.svc`)).toEqual({
      type,
      externalName: 'db.shop.svc',
      ports: [],
    });
    expect(after('www.example.com', 'other.team-b.svc')).toMatchObject({ externalName: 'www.example.com' });
    expect(after('db.shop.svc', 'www.example.com')).toMatchObject({ externalName: 'www.example.com' });
    expect(back({ externalName: 'db.shop.svc' }, {})).not.toHaveProperty('externalName');
  });

  test('is a merge patch with what changed, lists as a whole, null for what is gone', () => {
    const of = (spec: JsonObject): KubeObject => ({
      ...service(spec),
      metadata: { name: 'db', uid: 'u', resourceVersion: '7' },
    });
    const from = of({ type: 'NodePort', a: { b: { c: 1, d: 2 } }, e: 1, ports: [PORT, PORT] });
    const to = of({ type: 'NodePort', a: { b: { c: 1 } }, f: { g: 1 }, ports: [PORT] });
    expect(virtualPatch(kind, from, to)).toEqual({
      metadata: { uid: 'u', resourceVersion: '7' },
      spec: { a: { b: { d: null } }, e: null, f: { g: 1 }, ports: [PORT] },
    });
  });

  test('finds a moved port by its name', () => {
    expect(kind.content.elementAt(['spec', 'ports', 1, 'port'])).toEqual({ at: 2, idMember: 'name' });
    expect(kind.content.elementAt(['spec', 'ports', 1, 'name'])).toBeUndefined();
    expect(kind.content.elementAt(['spec', 'type'])).toBeUndefined();
    expect(kind.content.haveSameShape({ spec: { ports: [1] } }, { spec: {} })).toBe(false);
  });
});
