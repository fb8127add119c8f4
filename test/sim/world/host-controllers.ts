/** The controllers of a cluster that a syncer interacts with, as observed on kube-apiservers 1.36 and 1.37. */

import { keyOf, objectKey, type KubeObject, type ObjectKey } from '../../../src/kube/object.ts';
import { seededRandom } from '../../support/random.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { ingressOf, serviceSpec } from './service-storage.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import type { Change } from '../../../src/kube/memory-cluster.ts';
import { BEFORE_137, type ServerWays, type SimCluster } from './sim-cluster.ts';

export const CONTROLLER_MANAGER = 'kube-controller-manager';
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
export const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
export const SERVICE_NAME = 'kubernetes.io/service-name';

const REACTION_MS = 40;
/** Of a name that an API server generates. */
const RANDOM_CHARS = 5;
const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

export interface Controllers {
  /** Those of endpoints and of namespaces start again, and look at everything. */
  restart(): void;
  /** Deletes everything in the namespace, and the namespace as soon as no finalizer keeps anything in it. */
  deleteNamespace(name: string): void;
  /** As soon as the one that is being deleted is gone. */
  createNamespace(name: string): void;
}

export function startControllers(
  cluster: SimCluster,
  clock: VirtualClock,
  { controllerLagMs: lagMs, seed }: ServerWays = BEFORE_137,
): Controllers {
  const random = seededRandom(seed);
  // Seldom far behind.
  const delayMs = (): number => (lagMs === 0 ? REACTION_MS : REACTION_MS / 2 + random() ** 4 * (lagMs ?? 0));
  const endpoints = lagMs === undefined ? undefined : new EndpointsController(cluster, clock, delayMs);
  new MirroringController(cluster, clock);
  new GarbageCollector(cluster, clock);
  if (cluster.name === 'host') new LoadBalancers(cluster, clock);
  return {
    restart: () => {
      endpoints?.restart();
      for (const name of cluster.terminatingNamespaces) emptyNamespace(cluster, clock, name);
    },
    deleteNamespace: (name) => deleteNamespace(cluster, clock, name),
    createNamespace: (name) => createNamespace(cluster, clock, name),
  };
}

/**
 * The endpoints controller: it creates the Endpoints of a Service with a selector, removes those of a Service that is deleted, and, after
 * each deletion of Endpoints that it sees, deletes the Endpoints of that name that have no Service. Only at its start it spares those with the
 * annotation of a leader election.
 */
class EndpointsController {
  readonly #cluster: SimCluster;
  readonly #clock: VirtualClock;

  readonly #delayMs: () => number;

  constructor(cluster: SimCluster, clock: VirtualClock, delayMs: () => number) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#delayMs = delayMs;
    cluster.subscribe(({ plural, object, isDeletion }) => {
      if (plural === 'services' || (plural === 'endpoints' && isDeletion)) this.#enqueue(objectKey(object));
    });
  }

  restart(): void {
    for (const endpoints of this.#cluster.list('endpoints'))
      if (endpoints.metadata.annotations?.[LEADER_ANNOTATION] === undefined)
        this.#enqueue(objectKey(endpoints));
  }

  #enqueue(key: ObjectKey): void {
    this.#clock.schedule(this.#delayMs(), () => attempt(() => this.#sync(key)));
  }

  #sync(key: ObjectKey): void {
    const service = this.#cluster.get('services', key);
    const endpoints = this.#cluster.get('endpoints', key);
    if (service === undefined) {
      if (endpoints !== undefined) remove(this.#cluster, 'endpoints', endpoints);
      return;
    }
    if (!hasSelector(service)) return;
    const { name, namespace = '' } = service.metadata;
    const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
    const subsets = [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 80 }] }];
    if (endpoints === undefined) {
      const created = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name, namespace, labels }, subsets };
      this.#cluster.create('endpoints', created, { manager: CONTROLLER_MANAGER });
    } else {
      const metadata = { ...endpoints.metadata, labels: { ...labels } };
      this.#cluster.update('endpoints', { ...endpoints, metadata, subsets }, { manager: CONTROLLER_MANAGER });
    }
  }
}

/** Mirrors Endpoints of Services without a selector into one slice, and owns every slice that has its label. */
class MirroringController {
  readonly #cluster: SimCluster;
  #suffixes = 0;

  constructor(cluster: SimCluster, clock: VirtualClock) {
    this.#cluster = cluster;
    cluster.subscribe((change) => {
      const key = serviceKeyOf(change);
      const isOwn = change.plural === 'endpointslices' && change.manager === CONTROLLER_MANAGER;
      if (key !== undefined && !isOwn) clock.schedule(REACTION_MS, () => attempt(() => this.#sync(key)));
    });
  }

  #sync(key: ObjectKey): void {
    const [service, endpoints] = [this.#cluster.get('services', key), this.#cluster.get('endpoints', key)];
    const slices = this.#cluster.list('endpointslices').filter(({ metadata: { namespace, labels = {} } }) => {
      return `${namespace}/${labels[SERVICE_NAME]}` === key && labels[MANAGED_BY] === MIRRORING;
    });
    const isMirrored =
      service !== undefined &&
      !hasSelector(service) &&
      endpoints?.metadata.annotations?.[LEADER_ANNOTATION] === undefined;
    const [first, ...rest] = slices;
    for (const surplus of endpoints !== undefined && isMirrored ? rest : slices)
      remove(this.#cluster, 'endpointslices', surplus);
    if (endpoints !== undefined && isMirrored) this.#mirror(endpoints, first);
  }

  #mirror(endpoints: KubeObject, slice: KubeObject | undefined): void {
    const { name, namespace = '', uid = '', labels, annotations = {} } = endpoints.metadata;
    const wanted = {
      labels: { ...labels, [SERVICE_NAME]: name, [MANAGED_BY]: MIRRORING },
      annotations: { ...annotations },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Endpoints', name, uid, controller: true }],
    };
    const type = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' };
    const content = { endpoints: endpointsOf(endpoints), ports: [{ port: 80, protocol: 'TCP', name: '' }] };
    if (slice?.['addressType'] === 'IPv4') {
      const metadata = { ...slice.metadata, ...wanted };
      this.#cluster.update(
        'endpointslices',
        { ...slice, ...content, metadata },
        { manager: CONTROLLER_MANAGER },
      );
    } else {
      const suffix = (this.#suffixes++).toString(36).padStart(RANDOM_CHARS, '0');
      const generated = { name: `${name}-${suffix}`, generateName: `${name}-` };
      const metadata = { ...generated, namespace, ...wanted };
      this.#cluster.create(
        'endpointslices',
        { ...type, metadata, ...content },
        { manager: CONTROLLER_MANAGER },
      );
    }
  }
}

/** Gives each Service of type LoadBalancer an address outside of the cluster. */
class LoadBalancers {
  readonly #cluster: SimCluster;
  #addresses = 0;

  constructor(cluster: SimCluster, clock: VirtualClock) {
    this.#cluster = cluster;
    cluster.subscribe(({ plural, object, isDeletion }) => {
      if (plural === 'services' && !isDeletion)
        clock.schedule(REACTION_MS, () => attempt(() => this.#sync(objectKey(object))));
    });
  }

  #sync(key: ObjectKey): void {
    const service = this.#cluster.get('services', key);
    if (service === undefined) return;
    const isBalanced = serviceSpec(service).type === 'LoadBalancer';
    if (isBalanced === ingressOf(service).length > 0) return;
    const { name, namespace = '' } = service.metadata;
    const ingress = isBalanced ? [{ ip: `203.0.113.${++this.#addresses}` }] : null;
    const options = { manager: CONTROLLER_MANAGER, isDryRun: false, isStatus: true };
    const patch = { status: { loadBalancer: { ingress } } };
    this.#cluster.mergePatch('services', { name, namespace }, patch, options);
  }
}

/** Deletes what an object owned that is gone, and what names an owner that does not exist. */
class GarbageCollector {
  readonly #cluster: SimCluster;
  readonly #uids = new Set<string>();

  constructor(cluster: SimCluster, clock: VirtualClock) {
    this.#cluster = cluster;
    cluster.subscribe(({ object, isDeletion, previous }) => {
      const { uid = '' } = object.metadata;
      if (isDeletion) this.#uids.delete(uid);
      else this.#uids.add(uid);
      const isSuspect = isDeletion || (previous === undefined && ownersOf(object).length > 0);
      if (isSuspect) clock.schedule(2 * REACTION_MS, () => attempt(() => this.#collect()));
    });
  }

  #collect(): void {
    for (const plural of this.#cluster.plurals())
      for (const object of this.#cluster.list(plural)) {
        const owners = ownersOf(object);
        if (owners.length > 0 && owners.every((uid) => !this.#uids.has(uid)))
          attempt(() => remove(this.#cluster, plural, object));
      }
  }
}

function deleteNamespace(cluster: SimCluster, clock: VirtualClock, name: string): void {
  if (!cluster.hasNamespace(name)) return;
  cluster.setNamespace(name, 'terminating');
  emptyNamespace(cluster, clock, name);
}

function emptyNamespace(cluster: SimCluster, clock: VirtualClock, name: string): void {
  clock.schedule(REACTION_MS, () => {
    if (cluster.hasNamespace(name)) return; // a restore knows nothing of its deletion
    for (const [plural, object] of objectsIn(cluster, name)) attempt(() => remove(cluster, plural, object));
    clock.schedule(REACTION_MS, () => endNamespace(cluster, clock, name));
  });
}

function endNamespace(cluster: SimCluster, clock: VirtualClock, name: string): void {
  if (objectsIn(cluster, name).length > 0)
    clock.schedule(REACTION_MS, () => endNamespace(cluster, clock, name));
  else if (!cluster.hasNamespace(name)) cluster.setNamespace(name, 'gone');
}

function createNamespace(cluster: SimCluster, clock: VirtualClock, name: string): void {
  if (!cluster.hasNamespace(name) && objectsIn(cluster, name).length > 0)
    clock.schedule(REACTION_MS, () => createNamespace(cluster, clock, name));
  else cluster.setNamespace(name, 'active');
}

function objectsIn(cluster: SimCluster, namespace: string): (readonly [plural: string, KubeObject])[] {
  return [...cluster.plurals()]
    .flatMap((plural) => cluster.list(plural).map((object) => [plural, object] as const))
    .filter(([, object]) => object.metadata.namespace === namespace);
}

function remove(
  cluster: SimCluster,
  plural: string,
  { metadata: { name, namespace = '' } }: KubeObject,
): void {
  cluster.delete(plural, { name, namespace }, { manager: CONTROLLER_MANAGER });
}

/** What another client has changed meanwhile is looked at again with the event of that change. */
function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}

function serviceKeyOf({ plural, object }: Change): ObjectKey | undefined {
  if (plural === 'services' || plural === 'endpoints') return objectKey(object);
  const { namespace = '', labels = {} } = object.metadata;
  if (plural !== 'endpointslices' || labels[MANAGED_BY] !== MIRRORING) return undefined;
  return keyOf({ namespace, name: labels[SERVICE_NAME] ?? '' });
}

export function ownersOf({ metadata }: KubeObject): readonly string[] {
  const owners = (metadata['ownerReferences'] ?? []) as { uid: string }[]; // as every writer of the simulation creates them
  return owners.map(({ uid }) => uid);
}

function endpointsOf(endpoints: KubeObject) {
  const subsets = (endpoints['subsets'] ?? []) as { addresses?: { ip: string; hostname?: string }[] }[]; // Endpoints
  return subsets
    .flatMap(({ addresses = [] }) => addresses)
    .map(({ ip, hostname }) => ({ addresses: [ip], ...(hostname === undefined ? {} : { hostname }) }));
}

export function hasSelector(service: KubeObject | undefined): boolean {
  const spec = service?.['spec'];
  const selector = spec && (spec as Record<string, unknown>)['selector']; // raw JSON
  return typeof selector === 'object' && selector !== null && Object.keys(selector).length > 0;
}
