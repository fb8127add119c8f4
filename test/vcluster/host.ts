/** The cluster on which vClusters are installed, with a log of its writes. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startRealClusters, type RealCluster, type RealClusters } from '../e2e/clusters.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';

/** Of the Service "kubernetes", which Pods reach. */
export const HOST_IP = '10.0.0.1';

export class VclusterHost implements AsyncDisposable {
  readonly client: TestCluster;
  readonly auditLog: string;
  readonly #clusters: RealClusters;
  readonly #directory: string;

  private constructor(clusters: RealClusters, directory: string) {
    this.#clusters = clusters;
    this.#directory = directory;
    this.auditLog = join(directory, 'audit.log');
    this.client = new TestCluster(clusters.host.kubeconfigPath);
  }

  static async start(): Promise<VclusterHost> {
    const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-vcluster-host-'));
    const hostFlags = ['--bind-address=0.0.0.0', ...auditFlags(directory)];
    const clusters = await startRealClusters({ virtual: false, hostFlags });
    const host = new VclusterHost(clusters, directory);
    await host.client.request('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node' },
    });
    return host;
  }

  get access(): RealCluster {
    return this.#clusters.host;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.#clusters[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Flags of an API server that records its writes in `audit.log` of this folder. */
export function auditFlags(directory: string): string[] {
  const policy = join(directory, 'audit.yaml');
  const writes = { level: 'Metadata', verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'] };
  const rules = [writes, { level: 'None' }];
  writeFileSync(
    policy,
    stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }),
  );
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(directory, 'audit.log')}`];
}
