/** What a patch towards the host may make of the spec of a copy. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import { decodeObject } from '../../../src/apiserver/schema/decode.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { AddressField } from '../../../src/syncer/kinds/load-balancers.ts';
import { builtInKinds } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { asJson } from '../../../src/kube/object.ts';
import { createServiceKind, serviceFields } from '../../../src/syncer/kinds/services.ts';
import { BASE as base, hasSyncedEndpoints, kind, PORT, service } from './service-setup.ts';

describe('a patched copy', () => {
  const validated = (
    before: JsonObject,
    after: JsonValue,
    allow: AddressField[] = [],
  ): string | undefined => {
    const problem = createServiceKind({ hasSyncedEndpoints, neverCopied: () => undefined, allow }).validate(
      asJson(service(before)),
      asJson({ ...service({}), spec: after }),
    );
    return problem && `${problem.path.join('.')} ${problem.message}`;
  };
  const ports = (...changes: JsonObject[]): JsonObject => ({
    ports: changes.map((change, at) => ({ ...PORT, name: `p${at}`, port: 80 + at, ...change })),
  });

  test.each<[JsonObject]>([
    [{}],
    [{ type: 'NodePort', externalTrafficPolicy: 'Local' }],
    [{ type: 'LoadBalancer', loadBalancerClass: 'example.com/lb', allocateLoadBalancerNodePorts: false }],
    [{ type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/8', 'fd00::/64'] }],
    [{ type: 'ExternalName', externalName: 'a.example.com.', clusterIP: '', clusterIPs: [] }],
    [{ clusterIP: '', clusterIPs: [] }],
    [{ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } }],
    [{ publishNotReadyAddresses: true, trafficDistribution: 'PreferClose', internalTrafficPolicy: 'Local' }],
    [ports({ targetPort: 'http' }, { appProtocol: 'kubernetes.io/h2c', protocol: 'UDP' })],
    [{ ports: [{ port: 80 }] }],
    [
      {
        ports: [
          { ...PORT, name: 'a' },
          { ...PORT, name: 'b', protocol: 'UDP' },
        ],
      },
    ],
    [{ selector: {}, externalIPs: [], loadBalancerIP: '' }],
    [{ type: 'LoadBalancer', ...ports({ port: 10_250 }) }],
    [{ future: { any: 1 } }],
  ])('may have %j', (change) => {
    expect(validated(base, { ...base, ...change })).toBeUndefined();
  });

  const NAME_PART =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  const LABEL =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  const SUBDOMAIN = LABEL.replace('label', 'subdomain').replace(" or '-'", ", '-' or '.'");

  test.each<[JsonObject | null, string]>([
    [null, 'spec.ports is required for the type ClusterIP'],
    [
      { type: 'Other' },
      'spec.type must be one of ClusterIP, ExternalName, LoadBalancer, NodePort, not "Other"',
    ],
    [{ selector: { app: 'x' } }, 'spec.selector is never copied: a selector would match Pods of the host'],
    [
      { externalIPs: ['1.2.3.4'] },
      'spec.externalIPs takes traffic of the host, so it is copied only if endpointSyncer.services.allow names externalIPs',
    ],
    [
      { type: 'LoadBalancer', loadBalancerIP: '1.2.3.4' },
      'spec.loadBalancerIP takes traffic of the host, so it is copied only if endpointSyncer.services.allow names loadBalancerIP',
    ],
    [{ clusterIP: 'None' }, 'spec.clusterIP a patch may not change whether a Service is headless'],
    [{ clusterIP: '10.1.1.1' }, 'spec.clusterIP is allocated by the host, so a patch may not set it'],
    [{ ipFamilies: ['IPv6'] }, 'spec.ipFamilies is that of the virtual Service, so a patch may not set it'],
    [
      { type: 'LoadBalancer', healthCheckNodePort: 30_000 },
      'spec.healthCheckNodePort is allocated by the host, so a patch may not set it',
    ],
    [
      { type: 'NodePort', ...ports({ nodePort: 30_000 }) },
      'spec.ports.0.nodePort is allocated by the host, so a patch may not set it',
    ],
    [{ loadBalancerClass: 'a/b' }, "spec.loadBalancerClass may only be used when `type` is 'LoadBalancer'"],
    [
      { type: 'LoadBalancer', loadBalancerClass: 'a b' },
      `spec.loadBalancerClass name part ${NAME_PART}, not "a b"`,
    ],
    [
      { type: 'LoadBalancer', loadBalancerSourceRanges: '10.0.0.0/8' },
      'spec.loadBalancerSourceRanges must be a list, not "10.0.0.0/8"',
    ],
    [
      { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/33'] },
      'spec.loadBalancerSourceRanges.0 must be a valid CIDR value, not "10.0.0.0/33"',
    ],
    [{ type: 'ExternalName' }, 'spec.externalName is required for the type ExternalName'],
    [{ type: 'ExternalName', externalName: 'A b' }, `spec.externalName ${SUBDOMAIN}, not "A b"`],
    [{ sessionAffinity: 'Always' }, 'spec.sessionAffinity must be one of ClientIP, None, not "Always"'],
    [
      { sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds must be greater than 0 and less than 86400, not 0',
    ],
    [{ sessionAffinityConfig: [] }, 'spec.sessionAffinityConfig must be an object, not a list'],
    [
      { sessionAffinityConfig: { clientIP: 1 } },
      'spec.sessionAffinityConfig.clientIP must be an object, not 1',
    ],
    [{ publishNotReadyAddresses: 'yes' }, 'spec.publishNotReadyAddresses must be true or false, not "yes"'],
    [{ ports: [] }, 'spec.ports is required for the type ClusterIP'],
    [{ ports: null }, 'spec.ports is required for the type ClusterIP'],
    [{ ports: [80] }, 'spec.ports.0 must be an object, not 80'],
    [ports({ port: 0 }), 'spec.ports.0.port must be between 1 and 65535, inclusive, not 0'],
    [ports({ port: '80' }), 'spec.ports.0.port must be a whole number, not "80"'],
    [ports({ protocol: 'ICMP' }), 'spec.ports.0.protocol must be one of SCTP, TCP, UDP, not "ICMP"'],
    [
      ports({ targetPort: 'Web_port' }),
      'spec.ports.0.targetPort must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), not "Web_port"',
    ],
    [
      ports({ targetPort: [] }),
      'spec.ports.0.targetPort must be a whole number or the name of a port, not a list',
    ],
    [
      ports({ targetPort: 70_000 }),
      'spec.ports.0.targetPort must be between 1 and 65535, inclusive, not 70000',
    ],
    [ports({ name: 'A' }), `spec.ports.0.name ${LABEL}, not "A"`],
    [ports({}, { name: '' }), 'spec.ports.1.name is required where there are several ports'],
    [ports({}, { name: 'p0' }), 'spec.ports.1.name must be different from that of every other item'],
    [ports({}, { port: 80 }), 'spec.ports.1.port must be different from that of every other item'],
  ])('may not have %j', (change, problem) => {
    expect(validated(base, change && { ...base, ...change })).toBe(problem);
  });

  test('that is headless stays headless and a ClusterIP', () => {
    const headless = { ...base, clusterIP: 'None', clusterIPs: ['None'] };
    expect(validated(headless, { ...headless, ports: [] })).toBeUndefined();
    expect(validated(headless, { ...headless, clusterIP: '' })).toMatch(/whether a Service is headless/u);
    expect(validated(headless, { ...headless, type: 'NodePort' })).toBe(
      'spec.clusterIP may not be set to \'None\' for NodePort services, not "None"',
    );
  });

  test('may have the addresses that endpointSyncer.services.allow permits, if they are valid', () => {
    expect(validated(base, { ...base, externalIPs: ['1.2.3.4'] }, ['externalIPs'])).toBeUndefined();
    expect(validated(base, { ...base, externalIPs: ['127.0.0.1'] }, ['externalIPs'])).toMatch(
      /^spec\.externalIPs\.0 may not be in the loopback range/u,
    );
    expect(
      validated({ ...base, externalIPs: ['x'] }, { ...base, externalIPs: ['x'], type: 'NodePort' }),
    ).toBeUndefined();
  });

  test('may not have a status of its own', () => {
    const before = asJson(service(base));
    const after = { ...before, status: { loadBalancer: {} } };
    expect(kind.validate({ ...before, status: {} }, after)).toEqual({
      path: ['status'],
      message: 'is kept by each cluster, so a patch may not set it',
    });
  });
});

test('whatever a patch makes of the spec, the result is refused or valid for an API server', () => {
  const definition = builtInKinds(allowEverything).all.find(({ plural }) => plural === 'services');
  if (definition === undefined) throw new Error('the embedded cluster has Services');
  const value = fc.oneof(
    fc.constantFrom<JsonValue>(
      '',
      null,
      'x',
      'None',
      'Local',
      'ClientIP',
      'A b',
      0,
      1,
      80,
      70_000,
      true,
      [],
      {},
    ),
    fc.constantFrom<JsonValue>(
      ['1.2.3.4'],
      ['x'],
      [1],
      { clientIP: { timeoutSeconds: 60 } },
      { clientIP: '' },
      { app: 'x' },
    ),
    fc.constantFrom<JsonValue>('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', 'a.example.com'),
  );
  const port = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.dictionary(fc.constantFrom('name', 'port', 'protocol', 'targetPort', 'nodePort'), value),
    },
    { weight: 1, arbitrary: value },
  );
  const field = fc.constantFrom(
    ...Object.keys((serviceFields.fields as Record<string, object>)['spec'] ?? {}),
  ); // the fields of an object
  const change = fc.record({
    spec: fc.dictionary(field, value, { maxKeys: 3 }),
    ports: fc.option(
      fc.array(
        port.map((one) => (isJsonObject(one) ? { port: 80, ...one } : one)),
        { maxLength: 3 },
      ),
    ),
  });
  let accepted = 0;
  fc.assert(
    fc.property(change, ({ spec, ports }) => {
      const before = service({
        type: 'ClusterIP',
        clusterIP: '10.9.9.9',
        sessionAffinity: 'None',
        ports: [PORT],
      });
      const after = {
        ...before,
        spec: { ...(before['spec'] as JsonObject), ...spec, ...(ports && { ports }) },
      };
      if (kind.validate(asJson(before), asJson(after)) !== undefined) return;
      accepted++;
      const settled = asJson({ ...after, ...kind.content.afterPatches?.(after, before, before) });
      const { value: stored } = decodeObject(definition.schema, settled);
      definition.applyDefaults(stored);
      expect(definition.validate(stored, undefined)).toEqual([]);
      expect(stored['spec']).not.toHaveProperty('selector');
      expect(stored['spec']).not.toHaveProperty('externalIPs.0');
      expect((stored['spec'] as JsonObject)['loadBalancerIP'] ?? '').toBe('');
    }),
    { numRuns: 2000 },
  );
  expect(accepted).toBeGreaterThan(50);
});
