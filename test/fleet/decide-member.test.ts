/** What becomes of a vCluster, by what the host has of it. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { decideMember, type FleetRules, type MemberDecision } from '../../src/fleet/decide-member.ts';
import type { VclusterObjects } from '../../src/fleet/vcluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { validConfig } from '../cli/config/setup.ts';

const OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';

function rules(lines = ''): FleetRules {
  const text = `endpointSyncer:\n  host: {namespace: own}\n  fleet: {enabled: true, namespaces: {include: ["team-*"], exclude: [team-x]}}\n${lines}`;
  const { fleet, defaults, host } = validConfig(text, { acceptsFleet: true });
  return { fleet, defaults, host };
}

interface Parts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly replicas?: number;
  readonly workloads?: number;
  /** Undefined: there is no Secret. */
  readonly access?: Record<string, string> | undefined;
  readonly values?: Record<string, string> | undefined;
  readonly overlay?: string;
  /** A syncer has copied it there. */
  readonly isOverlayCopied?: boolean;
}

function vcluster(parts: Parts = {}): VclusterObjects {
  const { namespace = 'team-a', annotations = {}, replicas = 1, workloads = 1, overlay } = parts;
  const labels = parts.labels ?? { app: 'vcluster', 'endpoint-syncer/enabled': 'true' };
  const { access = { config: 'a kubeconfig' }, values = { 'config.yaml': OFF } } = parts;
  const workload: KubeObject = {
    metadata: { name: 'vc', namespace, labels, annotations },
    spec: { replicas },
  };
  const isThere = (key: 'access' | 'values'): boolean => !(key in parts && parts[key] === undefined);
  return {
    namespace,
    name: 'vc',
    workloads: Array.from({ length: workloads }, () => workload),
    access: isThere('access') ? secret(access) : undefined,
    values: isThere('values') ? secret(values) : undefined,
    overlay:
      overlay === undefined
        ? undefined
        : {
            metadata: {
              name: 'x',
              ...(parts.isOverlayCopied === true && { labels: { 'vcluster.loft.sh/managed-by': 'other' } }),
            },
            data: { 'config.yaml': overlay },
          },
  };
}

function withPatches(count: number): string {
  const patches = Array.from({ length: count }, (_, at) => ({
    path: `metadata.annotations.a${at}`,
    expression: '"b"',
    reverseExpression: 'value',
  }));
  return JSON.stringify({
    sync: { toHost: { endpoints: { enabled: false, patches }, endpointSlices: { enabled: false } } },
  });
}

function secret(texts: Record<string, string>): KubeObject {
  const entries = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  return { metadata: { name: 'x' }, data: Object.fromEntries(entries) as JsonObject };
}

function decided(parts: Parts, lines = ''): string {
  const decision: MemberDecision = decideMember(vcluster(parts), rules(lines));
  return 'reason' in decision ? `${decision.kind}: ${decision.reason}` : decision.kind;
}

describe('whether it is a member', () => {
  test.each<[string, Parts, string]>([
    ['it has the label', {}, 'joined'],
    ['it has no label', { labels: { app: 'vcluster' } }, 'left'],
    ['its namespace is excluded', { namespace: 'team-x' }, 'left'],
    ['its namespace is not included', { namespace: 'prod' }, 'left'],
    ['its workload is gone', { workloads: 0 }, 'removed'],
    [
      'two workloads have its name',
      { workloads: 2 },
      expect.stringMatching(/^conflicting: a StatefulSet and a Deployment of the name "vc"/u) as string,
    ],
    ['its workload and its values are gone', { workloads: 0, values: undefined }, 'deleted'],
    ['it is scaled to 0', { replicas: 0 }, 'asleep: scaled to 0 replicas'],
    [
      'it is scaled to 0, and has no access',
      { replicas: 0, access: undefined },
      'asleep: scaled to 0 replicas',
    ],
    [
      'it is paused',
      { annotations: { 'loft.sh/paused': 'true' } },
      'asleep: paused (annotation loft.sh/paused)',
    ],
    ['it is not paused any more', { annotations: { 'loft.sh/paused': 'false' } }, 'joined'],
    [
      'vCluster has not written the access yet',
      { access: undefined },
      'waiting: Secret team-a/vc-vc does not exist yet: vCluster writes it after its start',
    ],
    [
      'there are no values',
      { values: undefined },
      'waiting: Secret team-a/vc-config-vc does not exist yet: the chart of vCluster creates it',
    ],
    [
      'the access has no kubeconfig',
      { access: { other: 'x' } },
      'invalid: Secret team-a/vc-vc has no kubeconfig under the key config',
    ],
    [
      'the values are empty',
      { values: { other: 'x' } },
      'invalid: Secret team-a/vc-config-vc has no values under the key config.yaml',
    ],
  ])('%s', (_, parts, expected) => {
    expect(decided(parts)).toEqual(expected);
  });

  test('a vCluster in the namespace of the fleet is no member', () => {
    const { host, ...rest } = rules();
    const decision = decideMember(vcluster({ namespace: 'team-b' }), {
      ...rest,
      host: { ...host, namespace: 'team-b' },
    });
    expect(decision).toEqual({
      kind: 'invalid',
      reason: 'it is in the fleet\'s own namespace "team-b": install it in another one',
    });
  });
});

describe('its configuration', () => {
  const config = (parts: Parts, lines = ''): Extract<MemberDecision, { kind: 'joined' }>['config'] => {
    const decision = decideMember(vcluster(parts), rules(lines));
    if (decision.kind !== 'joined') throw new Error(JSON.stringify(decision));
    return decision.config;
  };

  test('name, namespaces, access and Lease are those of the vCluster', () => {
    const { name, host, virtual, leaderElection, sync } = config({});
    expect({ name, namespace: host.namespace, secret: virtual.secret }).toEqual({
      name: 'vc',
      namespace: 'team-a',
      secret: 'vc-vc',
    });
    expect(leaderElection.enabled).toBe(true);
    expect([sync.endpoints.enabled, sync.endpointSlices.enabled]).toEqual([true, true]);
  });

  test('the ConfigMap wins over the defaults, leaf by leaf, and these over what is built in', () => {
    const lines =
      '  defaults: {workers: 3, requireService: true, references: {naming: long, onlyLabelled: a=b}}\n';
    const overlay = 'endpointSyncer: {requireService: false, references: {naming: short}}';
    const { workers, requireService, references, onHostDelete } = config({ overlay }, lines);
    expect({ workers, requireService, onHostDelete }).toEqual({
      workers: 3,
      requireService: false,
      onHostDelete: 'recreate',
    });
    expect(references).toMatchObject({ naming: 'short', onlyLabelled: 'a=b' });
  });

  test('patches are those of the values, and the ConfigMap may replace them', () => {
    const patches = (text: string): string =>
      `sync: {toHost: {endpoints: {enabled: ${text}, patches: [{path: metadata.annotations.a, expression: '"${text}"'}]}, endpointSlices: {enabled: false}}}`;
    const values = { 'config.yaml': patches('false') };
    expect(config({ values }).sync.endpoints.patches[0]?.expression).toBe('"false"');
    const overlay = patches('true');
    expect(config({ values, overlay }).sync.endpoints.patches[0]?.expression).toBe('"true"');
    const copied = config({ values, overlay, isOverlayCopied: true });
    expect(copied.sync.endpoints.patches[0]?.expression).toBe('"false"');
  });

  test.each<[string, Parts, RegExp]>([
    [
      'vCluster syncs the same',
      { values: { 'config.yaml': 'sync: {}' } },
      /Secret team-a\/vc-config-vc:1:1: sync\.toHost\.endpoints\.enabled: vCluster syncs Endpoints too/u,
    ],
    [
      'the values are no YAML',
      { values: { 'config.yaml': 'sync: {' } },
      /^invalid: Secret team-a\/vc-config-vc:1:/u,
    ],
    [
      'its values are longer than a parser should read',
      { values: { 'config.yaml': `${OFF}\n#${'x'.repeat(131_072)}` } },
      /^invalid: Secret team-a\/vc-config-vc has 1311\d\d characters under the key config\.yaml, more than 131072: shorten it/u,
    ],
    [
      'its ConfigMap is',
      { overlay: '#'.repeat(131_073) },
      /^invalid: ConfigMap team-a\/endpoint-syncer-vc has 131073 characters/u,
    ],
    [
      'the ConfigMap raises what its expressions may use',
      { overlay: 'endpointSyncer: {sandbox: {memory: 1Gi}}' },
      /^invalid: .*endpointSyncer\.sandbox: is not a setting of a member/u,
    ],
    [
      'the ConfigMap raises what it may use',
      { overlay: 'endpointSyncer: {fleet: {limits: {objects: 100000}}}' },
      /^invalid: .*endpointSyncer\.fleet: is not a setting of a member/u,
    ],
    [
      'the patches take long to compile',
      { values: { 'config.yaml': withPatches(400) } },
      /^invalid: Secret team-a\/vc-config-vc:\d+:\d+: sync\.toHost\.endpoints\.patches: the patches of a member have \d{5} characters as JSON, more than 32768/u,
    ],
    ['the ConfigMap is no YAML', { overlay: 'a: {' }, /^invalid: ConfigMap team-a\/endpoint-syncer-vc:1:/u],
    [
      'the ConfigMap has an unknown key',
      { overlay: 'endpointSyncer:\n  workerz: 3' },
      /ConfigMap team-a\/endpoint-syncer-vc:2:3: endpointSyncer\.workerz: .*did you mean "workers"/u,
    ],
    [
      'the ConfigMap sets what the fleet has',
      { overlay: 'endpointSyncer:\n  http: {bindAddress: ":1"}' },
      /endpoint-syncer-vc:2:3: endpointSyncer\.http: is not a setting of a member/u,
    ],
    [
      'the ConfigMap has the API',
      { overlay: 'managementApi: {enabled: true}' },
      /managementApi: is not a section of a member/u,
    ],
    [
      'it maps namespaces',
      {
        values: {
          'config.yaml': `${OFF.slice(0, -2)}, namespaces: {enabled: true, mappings: {byName: {a: kube-system}}}}}`,
        },
      },
      /sync\.toHost\.namespaces\.enabled: a fleet syncs into the namespace of the vCluster only/u,
    ],
    [
      'it has several namespaces',
      { values: { 'config.yaml': `${OFF}\nexperimental: {multiNamespaceMode: {enabled: true}}` } },
      /experimental\.multiNamespaceMode\.enabled: a fleet syncs/u,
    ],
  ])('%s', (_, parts, expected) => {
    expect(decided(parts)).toMatch(expected);
  });

  test('no setting of the ConfigMap chooses another name, namespace or access', () => {
    const overlay =
      'endpointSyncer: {name: other, host: {namespace: kube-system}, virtual: {kubeconfig: /etc/k}}';
    const decision = decided({ overlay });
    expect(decision).toMatch(/^invalid: /u);
    for (const key of ['name', 'host', 'virtual'])
      expect(decision).toContain(`endpointSyncer.${key}: is not a setting of a member`);
  });
});
