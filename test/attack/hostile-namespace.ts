/** What the owner of one namespace of a fleet creates there without any API server: many vClusters with long texts, and Leases that look like those of deleted vClusters. */

import { inParallel } from '../support/in-parallel.ts';
import type { TestCluster } from '../scenarios/cluster-client.ts';

export const EVIL = 'team-evil';
export const MEMBERS = 40;
export const LEASES = 1500;

const SWITCHED_OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n';
const IN_FLIGHT = 20;
/** The longest text that a fleet reads has 128 KiB. */
const LONG = 127_000;

export type NamespaceAttack = (host: TestCluster) => Promise<void>;

/** Of many small parts. */
function text(head: string, length: number): string {
  let written = `${head}x:\n`;
  for (let at = 0; written.length < length; at++) written += `- {a: [${at}, b, {c: d}]}\n`;
  return written;
}

/** vClusters whose API servers do not exist. */
const vclusters =
  (length: number): NamespaceAttack =>
  async (host) => {
    const values = base64(text(SWITCHED_OFF, length));
    const kubeconfig = base64(text('clusters: []\n', length));
    await host.ensureNamespace(EVIL);
    // One after the other: the oldest are the members, whatever else happens.
    for (let at = 0; at < MEMBERS; at++) {
      // In the order of their names, which decides where they have the same age in seconds.
      const name = `w${100 + at}`;
      const secret = (prefix: string, data: Record<string, string>) =>
        host.create('Secret', { metadata: { name: `${prefix}${name}`, namespace: EVIL }, data });
      await secret('vc-config-', { 'config.yaml': values });
      await secret('vc-', { config: kubeconfig });
      const pod = { app: 'vcluster', release: name };
      await host.create('StatefulSet', {
        metadata: { name, namespace: EVIL, labels: { ...pod, 'endpoint-syncer/enabled': 'true' } },
        spec: {
          replicas: 1,
          serviceName: name,
          selector: { matchLabels: pod },
          template: { metadata: { labels: pod }, spec: { containers: [{ name: 'vc', image: 'vc' }] } },
        },
      });
    }
  };

const leases =
  (holderIdentity: string, leaseDurationSeconds: number): NamespaceAttack =>
  async (host) => {
    await host.ensureNamespace(EVIL);
    await inParallel(LEASES, IN_FLIGHT, (at) =>
      host.create('Lease', {
        metadata: {
          name: `endpoint-syncer-f${at}`,
          namespace: EVIL,
          annotations: { 'endpoint-syncer/fleet': 'x' },
        },
        spec: { holderIdentity, leaseDurationSeconds },
      }),
    );
  };

export const VCLUSTERS: Readonly<Record<string, NamespaceAttack>> = {
  'vClusters whose values and kubeconfigs are as long as they may be': vclusters(LONG),
  'vClusters with short values': vclusters(1000),
};

/** As if of deleted vClusters. */
export const PLANTED_LEASES: Readonly<Record<string, NamespaceAttack>> = {
  'Leases that are held for ever by nobody': leases('me', 2 ** 31 - 1),
  'Leases that anybody may take': leases('', 1),
};

/** Deletes what the attacks have created. */
export async function leaveNamespace(host: TestCluster): Promise<void> {
  for (const kind of ['StatefulSet', 'Secret', 'Lease'] as const) await host.deleteAll(kind, EVIL);
}

function base64(value: string): string {
  return Buffer.from(value).toString('base64');
}
