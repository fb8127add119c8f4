/**
 * `run` on a real kube-apiserver is ready with the rights that `rbac` prints; without one that it needs it exits with 1 and names that rule,
 * without an optional one it is ready.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { PolicyRule } from '../../../src/fleet/granted-rights.ts';
import { missingRights, type WantedRight } from '../../../src/kube/access-review.ts';
import { RestClient } from '../../../src/kube/client/client.ts';
import { loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import type { ClusterClient } from '../../../src/kube/types.ts';
import type { Daemon } from '../../scenarios/daemon.ts';
import { ClusterHarness } from './cluster-harness.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);

interface RoleDocument {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly PolicyRule[];
}

/** Events about the configuration; the namespace that tells one virtual cluster from another. */
const OPTIONAL = { host: ['events.k8s.io/events'], virtual: ['/namespaces'] };

/** Part of a warning. */
const EVERYTHING = 'the user may do everything';

/** The lines of a log with this text in their message. */
function linesOf(log: string, text: string): readonly object[] {
  return log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { readonly msg?: string; readonly message?: string })
    .filter(({ msg, message = msg }) => message?.includes(text) === true);
}

/** The users are reported with this line; the end of the daemon waits for it. */
const whenReported = (daemon: Daemon): Promise<unknown> => daemon.whenLogged(/^ready$/u);

function endpointsFile(folder: string): string {
  const file = join(folder, 'web.json');
  const subsets = [{ addresses: [{ ip: '192.0.2.7' }], ports: [{ port: 80 }] }];
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web' }, subsets }),
  );
  return file;
}

const CONFIG = {
  sync: {
    toHost: {
      endpoints: {
        patches: [
          { path: 'metadata.annotations["a"]', reference: { apiVersion: 'v1', kind: 'ConfigMap' } },
          {
            path: 'metadata.annotations["b"]',
            reference: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
          },
        ],
      },
      // Their rights contain the one right that is not needed to start: to list the slices of the host.
      endpointSlices: { enabled: true },
    },
  },
  endpointSyncer: {
    name: 'a',
    services: 'sync',
    virtual: { secret: 'vc-a' },
    host: { kubeconfig: 'host.kubeconfig', namespace: 'team' },
    onHostDelete: 'deleteVirtual',
    leaderElection: { enabled: true },
  },
};

describe('the rights that rbac prints', () => {
  let harness: ClusterHarness;
  let config = '';

  async function printed(
    cluster: 'host' | 'virtual',
    text = config,
    ...flags: readonly string[]
  ): Promise<readonly RoleDocument[]> {
    const file = join(harness.folder, 'rbac.yaml');
    writeFileSync(file, text);
    const args = ['rbac', '--config', file, '--cluster', cluster, '-o', 'json', ...flags];
    const { stdout } = await run(process.execPath, [join(ROOT, 'src', 'main.ts'), ...args]);
    return (JSON.parse(stdout) as { items: RoleDocument[] }).items; // what the command documents
  }

  async function apply(cluster: 'host' | 'virtual', items: readonly RoleDocument[]): Promise<void> {
    await harness.apply(cluster, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }

  beforeAll(async () => {
    harness = await ClusterHarness.start(['team', 'mapped', 'mapped-shop']);
    const kubeconfig = join(harness.folder, 'host.kubeconfig');
    config = JSON.stringify({
      ...CONFIG,
      endpointSyncer: { ...CONFIG.endpointSyncer, host: { kubeconfig, namespace: 'team' } },
    });
    await harness
      .kubectl('virtual', 'get', 'namespace', 'kube-system')
      .catch(() => harness.kubectl('virtual', 'create', 'namespace', 'kube-system'));
    for (const cluster of ['host', 'virtual'] as const) await apply(cluster, await printed(cluster));
    writeFileSync(kubeconfig, await harness.kubeconfigOf('host', 'team', 'endpoint-syncer'));
    const virtual = await harness.kubeconfigOf('virtual', 'kube-system', 'endpoint-syncer');
    await harness.createSecret('team', 'vc-a', 'config', virtual);
  });

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
  });

  test('are sufficient, and the log names the user that has them', async () => {
    const { exitCode, stderr } = await harness.startOutcome(config, [], whenReported);
    expect(exitCode).toBe('ready');
    const users = linesOf(stderr, 'connected');
    expect(users).toHaveLength(2);
    for (const [cluster, namespace] of [
      ['host', 'team'],
      ['virtual', 'kube-system'],
    ])
      expect(users).toContainEqual(
        expect.objectContaining({ cluster, user: `system:serviceaccount:${namespace}:endpoint-syncer` }),
      );
    expect(linesOf(stderr, EVERYTHING)).toEqual([]);
  });

  test('are not those of an administrator, of whom the log warns', async () => {
    const { endpointSyncer, ...rest } = JSON.parse(config) as typeof CONFIG; // written above
    const kubeconfig = harness.clusters.host.kubeconfigPath;
    const host = { ...endpointSyncer.host, kubeconfig };
    const { exitCode, stderr } = await harness.startOutcome(
      JSON.stringify({ ...rest, endpointSyncer: { ...endpointSyncer, host } }),
      [],
      whenReported,
    );
    expect(exitCode).toBe('ready');
    expect(linesOf(stderr, EVERYTHING)).toMatchObject([{ level: 'warn', cluster: 'host' }]);
  });

  test('are proven by rules, in a namespace and in every namespace, as access reviews decide', async () => {
    const bound = { apiGroup: 'rbac.authorization.k8s.io', name: 'limited' };
    const subjects = [{ kind: 'ServiceAccount', namespace: 'team', name: 'limited' }];
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    const team = { name: 'limited', namespace: 'team' };
    const rules = [
      { apiGroups: [''], resources: ['endpoints'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['one'], verbs: ['get'] },
    ];
    const wide = [
      { apiGroups: ['*'], resources: ['services'], verbs: ['*'] },
      { apiGroups: [''], resources: ['*/status'], verbs: ['patch'] },
    ];
    const items = [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: team },
      { apiVersion, kind: 'Role', metadata: team, rules },
      { apiVersion, kind: 'RoleBinding', metadata: team, roleRef: { ...bound, kind: 'Role' }, subjects },
      { apiVersion, kind: 'ClusterRole', metadata: { name: 'limited' }, rules: wide },
      {
        apiVersion,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'limited' },
        roleRef: { ...bound, kind: 'ClusterRole' },
        subjects,
      },
    ];
    await harness.apply('host', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    const kubeconfig = join(harness.folder, 'limited.kubeconfig');
    writeFileSync(kubeconfig, await harness.kubeconfigOf('host', 'team', 'limited'));
    await using client = new RestClient({
      cluster: 'host',
      access: loadClusterAccess({ kubeconfig, context: '' }, { clock: systemClock }),
      clock: systemClock,
      metrics: { requested: () => undefined },
      userAgent: 'rights/1',
    });
    const wanted = ['team', 'mapped', ''].flatMap((namespace) =>
      [
        ['list', 'endpoints'],
        ['watch', 'endpoints'],
        ['delete', 'endpoints'],
        ['create', 'services'],
        ['patch', 'services/status'],
        ['patch', 'endpoints/status'],
        ['update', 'endpoints/status'],
        ['get', 'secrets'],
        ['get', 'secrets', 'one'],
        ['get', 'secrets', 'two'],
      ].map(([verb = '', resource = '', name]): WantedRight => {
        const right = { verb, group: '', resource, namespace };
        return name === undefined ? right : { ...right, name };
      }),
    );
    const sent: string[] = [];
    const recording: Pick<ClusterClient, 'request'> = {
      request(method, path, ...rest) {
        sent.push(path.split('/').at(-1) ?? '');
        return client.request(method, path, ...rest);
      },
    };
    const missing = await missingRights(recording, wanted);
    // A namespace of which one right is wanted has no rules review.
    const reviewed = await Promise.all(wanted.map((right) => missingRights(client, [right])));
    expect(missing).toEqual(reviewed.flat());
    const granted = wanted.filter((right) => !missing.includes(right));
    const text = ({ verb, resource, namespace, name = '' }: WantedRight): string =>
      [verb, resource, name, namespace || '*'].join(' ');
    const everywhere = ['create services ', 'patch services/status ', 'patch endpoints/status '];
    expect(granted.map(text).toSorted()).toEqual(
      [
        ...['team', 'mapped', '*'].flatMap((namespace) => everywhere.map((right) => `${right} ${namespace}`)),
        ...['list endpoints ', 'watch endpoints ', 'get secrets one'].map((right) => `${right} team`),
      ].toSorted(),
    );
    const countOf = (path: string): number => sent.filter((other) => other === path).length;
    expect(countOf('selfsubjectrulesreviews')).toBe(3);
    expect(countOf('selfsubjectaccessreviews')).toBe(missing.length);
  });

  test('are Roles for mappings by exact names, and sufficient', async () => {
    const kubeconfigs = {
      host: join(harness.folder, 'mapped-host'),
      virtual: join(harness.folder, 'mapped-virtual'),
    };
    const mapped = JSON.stringify({
      sync: { toHost: { namespaces: { enabled: true, mappings: { byName: { shop: 'mapped-shop' } } } } },
      endpointSyncer: {
        name: 'mapped',
        virtual: { kubeconfig: kubeconfigs.virtual },
        host: { kubeconfig: kubeconfigs.host, namespace: 'mapped' },
      },
    });
    const accounts = { host: 'mapped', virtual: 'kube-system' };
    const kinds: Record<string, readonly string[]> = {};
    for (const cluster of ['host', 'virtual'] as const) {
      const documents = await printed(cluster, mapped, '--service-account', 'mapped-syncer');
      kinds[cluster] = documents.map(({ kind }) => kind);
      await apply(cluster, documents);
      const account = await harness.kubeconfigOf(cluster, accounts[cluster], 'mapped-syncer');
      writeFileSync(kubeconfigs[cluster], account);
    }
    expect(kinds['host']).not.toContain('ClusterRole');
    await harness.kubectl('virtual', 'create', 'namespace', 'shop');
    for (const namespace of ['shop', 'default'])
      await harness.kubectl('virtual', '-n', namespace, 'create', '-f', endpointsFile(harness.folder));
    const copied = async (): Promise<void> => {
      for (const [namespace, name] of [
        ['mapped-shop', 'web'],
        ['mapped', 'web-x-default-x-mapped'],
      ] as const) {
        const wait = ['wait', '--for=create', `endpoints/${name}`, '--timeout=60s'];
        await harness.kubectl('host', '-n', namespace, ...wait);
      }
    };
    expect(await harness.startOutcome(mapped, [], copied)).toMatchObject({ exitCode: 'ready' });
  });

  test.each(['host', 'virtual'] as const)(
    'are all needed on the %s, but for the optional ones',
    { timeout: 600_000 },
    async (cluster) => {
      const documents = await printed(cluster);
      const outcomes: { rule: string; exitCode: unknown; isNamed: boolean }[] = [];
      const role = documents.find(({ rules }) => rules !== undefined);
      for (const rule of role?.rules ?? []) {
        const without = { ...role, rules: role?.rules?.filter((other) => other !== rule) };
        await apply(cluster, [without as RoleDocument]); // of the same shape
        const { exitCode, stderr } = await harness.startOutcome(config);
        const resource = rule.resources[0] ?? '';
        const isNamed =
          exitCode !== 'ready' && stderr.includes(resource) && stderr.includes(rule.verbs[0] ?? '');
        outcomes.push({ rule: `${rule.apiGroups[0]}/${resource}`, exitCode, isNamed });
      }
      await apply(cluster, documents);
      expect(outcomes.length).toBeGreaterThan(3);
      expect(outcomes).toEqual(
        outcomes.map(({ rule }) =>
          OPTIONAL[cluster].includes(rule)
            ? { rule, exitCode: 'ready', isNamed: false }
            : { rule, exitCode: 1, isNamed: true },
        ),
      );
      expect(outcomes.map(({ rule }) => rule)).toEqual(expect.arrayContaining(OPTIONAL[cluster]));
    },
  );
});
