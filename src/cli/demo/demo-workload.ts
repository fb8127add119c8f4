/** The sample objects of the demo on its API servers: creates them, and changes one of them at intervals. */

import { sleep, systemClock } from '../../base/clock.ts';
import { ENDPOINTS, NAMESPACES, SERVICES, type Resource } from '../../kube/object.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { DEMO_HOST_NAMESPACE, DEMO_NAMESPACE, DEMO_SAMPLES, DEMO_SETTINGS } from './demo-samples.ts';

export const CONFIG_MAPS: Resource = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  isNamespaced: true,
};
const CHANGE_EVERY_MS = 4000;

export async function createSamples(virtual: ClusterClient): Promise<void> {
  await virtual.create(NAMESPACES, DEMO_NAMESPACE);
  await virtual.create(CONFIG_MAPS, DEMO_SETTINGS);
  for (const { service, endpoints } of DEMO_SAMPLES) {
    if (service !== undefined) await virtual.create(SERVICES, service);
    await virtual.create(ENDPOINTS, endpoints);
  }
}

/** Changes a sample every few seconds, on both sides alternately, until the signal is aborted. */
export async function keepChanging(
  clients: { virtual: ClusterClient; host: ClusterClient },
  signal: AbortSignal,
): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    await sleep(systemClock, CHANGE_EVERY_MS, signal);
    if (signal.aborted) return;
    try {
      await change(clients, round);
    } catch (error) {
      // The user of the demo may change or delete these objects.
      process.stderr.write(`the demo could not change its sample: ${String(error)}\n`);
    }
  }
}

async function change(
  { virtual, host }: { virtual: ClusterClient; host: ClusterClient },
  round: number,
): Promise<void> {
  if (round % 2 === 1) {
    const copy = { namespace: DEMO_HOST_NAMESPACE, name: 'db-x-shop-x-demo' };
    const annotations = { 'shop.example.com/owner': `team-${round % 4 === 1 ? 'checkout' : 'payments'}` };
    await host.patch(ENDPOINTS, copy, { type: 'merge', body: { metadata: { annotations } } });
    return;
  }
  const ips = round % 4 === 0 ? ['10.20.0.11', '10.20.0.12', '10.20.0.13'] : ['10.20.0.11'];
  const addresses = ips.map((ip, i) => ({ ip, hostname: `db-${i}` }));
  const subsets = [{ addresses, ports: [{ name: 'main', port: 8080, protocol: 'TCP' }] }];
  await virtual.patch(ENDPOINTS, { namespace: 'shop', name: 'db' }, { type: 'merge', body: { subsets } });
}
