/** Which Services are to have a copy, and what it must hold: computed without any code of the program. */

import { jsonEquals } from '../../../src/base/json.ts';
import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { PORT_OFFSET, type Settings } from '../daemon/sim-config.ts';
import {
  hasSelector,
  MANAGED_BY,
  MIRRORING,
  SERVICE_NAME,
  SLICE_CONTROLLER,
} from '../world/host-controllers.ts';
import {
  ingressOf,
  isHeadless,
  NETWORKS,
  serviceSpec,
  type ServicePort,
  type ServiceSpec,
} from '../world/service-storage.ts';
import { hostKeyOf } from '../world/names.ts';
import type { World } from './naive-model.ts';

/** Without a selector it needs Endpoints or a slice that are synced, but for a copy that is there already; a load balancer and an ExternalName need
 * nothing. */
export function wantsServiceCopy(service: KubeObject, world: World): boolean {
  const { type } = serviceSpec(service);
  if (type === 'ExternalName') return true;
  if (hasSelector(service)) return false;
  return type === 'LoadBalancer' || hasSyncedEndpoints(service, world) || keepsCopy(service, world);
}

/** Which nothing is behind any more. */
function keepsCopy(service: KubeObject, world: World): boolean {
  const { namespace = '', name } = service.metadata;
  const copy = world.host.get('services', hostKeyOf({ namespace, name }, world.settings));
  if (copy === undefined || copy.metadata.deletionTimestamp !== undefined || !world.isOurs(copy))
    return false;
  const { annotations = {} } = copy.metadata;
  const isItsOwn =
    annotations['vcluster.loft.sh/object-name'] === name &&
    annotations['vcluster.loft.sh/object-namespace'] === namespace;
  return isItsOwn && world.backed.has(objectKey(service));
}

function hasSyncedEndpoints(service: KubeObject, world: World): boolean {
  const { namespace = '', name } = service.metadata;
  const { settings, virtual } = world;
  if (settings.areEndpointsSynced && virtual.get('endpoints', `${namespace}/${name}`) !== undefined)
    return true;
  return virtual
    .list('endpointslices')
    .some(
      ({ metadata }) =>
        metadata.namespace === namespace &&
        metadata.labels?.[SERVICE_NAME] === name &&
        settings.areSlicesSynced &&
        !isExcludedSlice(metadata.labels, settings),
    );
}

/** A slice that a controller of the virtual cluster made: the host makes one of its own. */
export function isExcludedSlice(labels: Readonly<Record<string, string>>, settings: Settings): boolean {
  const manager = labels[MANAGED_BY];
  return manager === SLICE_CONTROLLER || (manager === MIRRORING && settings.areEndpointsSynced);
}

export function serviceDifferences(copy: KubeObject, virtual: KubeObject, world: World): string[] {
  const actual = serviceSpec(copy);
  const wanted = world.settings.isPatched ? patched(serviceSpec(virtual)) : serviceSpec(virtual);
  const isBalanced = wanted.type === 'LoadBalancer';
  const keptClass = world.classes.mayKeep(copy, virtual) ? actual.loadBalancerClass : undefined;
  const wantedClass = wanted.loadBalancerClass ?? keptClass;
  const differences: Readonly<Record<string, boolean>> = {
    type: actual.type !== wanted.type,
    externalName: actual.externalName !== wanted.externalName,
    loadBalancerClass: isBalanced && actual.loadBalancerClass !== wantedClass,
    selector: actual.selector !== undefined,
    ports: portsOf(actual.ports) !== portsOf(wanted.ports),
    'cluster IP': isHeadless(copy) !== isHeadless(virtual),
    'address of the virtual cluster': actual.clusterIP?.startsWith(NETWORKS.virtual) === true,
    'load-balancer status': isBalanced && !jsonEquals([...ingressOf(copy)], [...ingressOf(virtual)]),
  };
  return Object.keys(differences)
    .filter((what) => differences[what])
    .map((what) => `${what}: ${JSON.stringify(copy)}, expected ${JSON.stringify(virtual['spec'])}`);
}

function patched({ externalName, ports, ...spec }: ServiceSpec): ServiceSpec {
  return {
    ...spec,
    ...(externalName === undefined ? {} : { externalName: `host.${externalName}` }),
    ...(ports && { ports: ports.map((port) => ({ ...port, port: port.port + PORT_OFFSET })) }),
  };
}

/** A node port, once allocated by the host, stays that of its port as long as the type has node ports. */
export function changedNodePort(object: KubeObject, previous: KubeObject): string | undefined {
  const known = new Map((serviceSpec(previous).ports ?? []).map((port) => [portOf(port), port.nodePort]));
  const changed = (serviceSpec(object).ports ?? []).find((port) => {
    const before = known.get(portOf(port));
    return before !== undefined && port.nodePort !== undefined && before !== port.nodePort;
  });
  return changed && `the node port of ${changed.port} changes to ${changed.nodePort}`;
}

function portsOf(ports: readonly ServicePort[] = []): string {
  return ports.map(portOf).join();
}

function portOf({ port, protocol = 'TCP' }: ServicePort): string {
  return `${port}/${protocol}`;
}
