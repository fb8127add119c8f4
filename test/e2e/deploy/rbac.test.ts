/** `run` on a real kube-apiserver is ready with the rights that `rbac` prints; without any one rule it exits with 1 and names that rule. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PolicyRule } from '../../../src/cli/rbac/rbac-rules.ts';
import { ClusterHarness } from './cluster-harness.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);

interface RoleDocument {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly PolicyRule[];
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

  async function printed(cluster: 'host' | 'virtual'): Promise<readonly RoleDocument[]> {
    const file = join(harness.folder, 'rbac.yaml');
    writeFileSync(file, config);
    const args = ['rbac', '--config', file, '--cluster', cluster, '-o', 'json'];
    const { stdout } = await run(process.execPath, [join(ROOT, 'src', 'main.ts'), ...args]);
    return (JSON.parse(stdout) as { items: RoleDocument[] }).items; // what the command documents
  }

  async function apply(cluster: 'host' | 'virtual', items: readonly RoleDocument[]): Promise<void> {
    await harness.apply(cluster, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }

  beforeAll(async () => {
    harness = await ClusterHarness.start(['team']);
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
    await harness.kubectl(
      'host',
      '-n',
      'team',
      'create',
      'secret',
      'generic',
      'vc-a',
      `--from-literal=config=${virtual}`,
    );
  }, 120_000);

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
  });

  test('are sufficient', async () => {
    expect(await harness.startOutcome(config)).toMatchObject({ exitCode: 'ready' });
  });

  test.each(['host', 'virtual'] as const)(
    'are all needed on the %s',
    { timeout: 240_000 },
    async (cluster) => {
      const documents = await printed(cluster);
      const outcomes: { rule: string; exitCode: unknown; isNamed: boolean }[] = [];
      const role = documents.find(({ rules }) => rules !== undefined);
      for (const rule of role?.rules ?? []) {
        const without = { ...role, rules: role?.rules?.filter((other) => other !== rule) };
        await apply(cluster, [without as RoleDocument]); // of the same shape
        const { exitCode, stderr } = await harness.startOutcome(config);
        const resource = rule.resources[0] ?? '';
        const isNamed = stderr.includes(resource) && stderr.includes(rule.verbs[0] ?? '');
        outcomes.push({ rule: `${rule.apiGroups[0]}/${resource}`, exitCode, isNamed });
      }
      await apply(cluster, documents);
      expect(outcomes.length).toBeGreaterThan(3);
      expect(outcomes).toEqual(outcomes.map(({ rule }) => ({ rule, exitCode: 1, isNamed: true })));
    },
  );
});
