/** Services without an allocator: what the server sets and keeps, and what the columns show. */

import { describe, expect, test } from 'vitest';
import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { builtInTypes } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { decodeObject } from '../../../src/apiserver/schema/decode.ts';
import { changed, SERVICE_REFUSED, SERVICE_TAKEN, VALID_SERVICE } from '../../syncer/patch/endpoint-rules.ts';
import { services } from '../../../src/embedded-cluster/kinds/service.ts';

const SERVICES = services(builtInTypes());

/** The spec as it is stored. */
function storedSpec(spec: JsonObject, previous?: JsonObject): JsonValue | undefined {
  const object: JsonObject = { spec: cloneJson(spec) };
  SERVICES.applyDefaults(object);
  SERVICES.prepare(object, previous && { spec: previous }, undefined);
  return object['spec'];
}

const CLUSTER_IP = { type: 'ClusterIP', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' };
const IPV4 = { ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' };
const DUAL = { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' };

describe('the stored spec', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['without an address', {}, { ...CLUSTER_IP, ...IPV4 }],
    [
      'with an address',
      { clusterIP: '10.1.1.1' },
      { ...CLUSTER_IP, clusterIP: '10.1.1.1', clusterIPs: ['10.1.1.1'], ...IPV4 },
    ],
    [
      'headless, with endpoints of the host',
      { clusterIP: 'None' },
      { ...CLUSTER_IP, clusterIP: 'None', clusterIPs: ['None'], ...DUAL },
    ],
    [
      'headless, with Pods',
      { clusterIP: 'None', selector: { a: 'b' } },
      { ...CLUSTER_IP, clusterIP: 'None', clusterIPs: ['None'], selector: { a: 'b' }, ...IPV4 },
    ],
    [
      'of an external name',
      { type: 'ExternalName', externalName: 'a.example' },
      { type: 'ExternalName', externalName: 'a.example', sessionAffinity: 'None' },
    ],
    [
      'with affinity',
      { sessionAffinity: 'ClientIP' },
      {
        ...CLUSTER_IP,
        ...IPV4,
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      },
    ],
    [
      'with ports',
      { ports: [{ port: 80 }, { port: 81, protocol: 'UDP', targetPort: 'dns' }] },
      {
        ...CLUSTER_IP,
        ...IPV4,
        ports: [
          { port: 80, protocol: 'TCP', targetPort: 80 },
          { port: 81, protocol: 'UDP', targetPort: 'dns' },
        ],
      },
    ],
  ])('%s', (_, spec, stored) => {
    expect(storedSpec(spec)).toEqual(stored);
  });

  const before: JsonObject = { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], ...DUAL };

  test('keeps what was allocated where an update omits it', () => {
    expect(storedSpec({ selector: { a: 'b' } }, before)).toMatchObject({ ...before, selector: { a: 'b' } });
    expect(storedSpec({ clusterIP: '', clusterIPs: [], ipFamilies: ['IPv6'] }, before)).toMatchObject({
      clusterIP: 'None',
      clusterIPs: ['None'],
      ipFamilies: ['IPv6'],
    });
  });

  test('has nothing of before where either is an external name', () => {
    expect(storedSpec({ type: 'ExternalName' }, before)).not.toHaveProperty('clusterIP');
    expect(storedSpec({}, { ...before, type: 'ExternalName' })).toMatchObject(IPV4);
  });
});

test.each<[string, JsonObject, string[]]>([
  ['a Service of an external name', { type: 'ExternalName', externalName: 'a.example.' }, []],
  ['a Service without its external name', { type: 'ExternalName' }, ['spec.externalName']],
  ['a headless Service', { clusterIP: 'None' }, []],
  ['a Service without ports', {}, ['spec.ports']],
  ['a single port without a name', { ports: [{ port: 1 }] }, []],
  [
    'a name of two ports',
    {
      ports: [
        { name: 'a', port: 1 },
        { name: 'a', port: 2 },
      ],
    },
    ['spec.ports[1].name'],
  ],
  [
    'a target port that is no number of a port',
    { ports: [{ port: 1, targetPort: 70_000 }] },
    ['spec.ports[0].targetPort'],
  ],
  ['a selector that no label matches', { clusterIP: 'None', selector: { a: '-' } }, ['spec.selector']],
])('errors of %s', (_, spec, fields) => {
  const object = { spec: storedSpec(spec) ?? null };
  expect(SERVICES.validate(object, undefined).map(({ field }) => field)).toEqual(fields);
});

test.each<[string, JsonObject, string]>([
  ['External-IP', { spec: { type: 'ExternalName', externalName: 'a.example' } }, 'a.example'],
  [
    'External-IP',
    {
      spec: { externalIPs: ['1.1.1.1'] },
      status: { loadBalancer: { ingress: [{ ip: '2.2.2.2' }, { hostname: 'h' }] } },
    },
    '2.2.2.2,h,1.1.1.1',
  ],
  ['External-IP', {}, '<none>'],
  [
    'Port(s)',
    {
      spec: {
        ports: [
          { port: 80, nodePort: 30_080, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
      },
    },
    '80:30080/TCP,53/UDP',
  ],
  ['Port(s)', {}, '<none>'],
  ['Selector', { spec: { selector: { b: '2', a: '1' } } }, 'a=1,b=2'],
  ['Selector', { spec: { selector: {} } }, '<none>'],
])('the column %s of %j is %s', (name, object, text) => {
  expect(SERVICES.columns.find((column) => column.name === name)?.value(object, 0)).toBe(text);
});

describe('a kube-apiserver of the same rules', () => {
  const errorsOf = (object: JsonObject): unknown[] => {
    const { value } = decodeObject(SERVICES.schema, object);
    SERVICES.applyDefaults(value);
    SERVICES.prepare(value, undefined, undefined);
    return SERVICES.validate(value, undefined);
  };

  test.each(SERVICE_REFUSED)('rejects %j = %j', (path, value) => {
    expect(errorsOf(changed(path, value, VALID_SERVICE))).not.toEqual([]);
  });

  test.each(SERVICE_TAKEN)('accepts %j = %j', (path, value) => {
    expect(errorsOf(changed(path, value, VALID_SERVICE))).toEqual([]);
  });
});

test('an update of the type loses the fields of the former one that it leaves as they were', () => {
  const before = { type: 'LoadBalancer', loadBalancerClass: 'a/b', ports: [{ port: 80, nodePort: 30_000 }] };
  const spec = storedSpec({ ...before, type: 'ClusterIP' }, before);
  expect(spec).not.toHaveProperty('loadBalancerClass');
  expect(spec).not.toHaveProperty('ports.0.nodePort');
  expect(storedSpec({ ...before, type: 'ClusterIP', loadBalancerClass: 'c/d' }, before)).toHaveProperty(
    'loadBalancerClass',
  );
});
