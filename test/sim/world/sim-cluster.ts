/** A cluster in memory that can go down and come back with the data of a backup. */

import { MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import type { ClusterName } from '../../../src/kube/types.ts';
import { ServiceStorage } from './service-storage.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';

/** In the changes by which a backup differs from what was there. */
export const RESTORE_MANAGER = 'etcdctl snapshot restore';

/** What a mutating webhook or policy makes of an object that is written. */
export type Admission = (plural: string, object: KubeObject) => KubeObject;

/** How a version of Kubernetes deletes the Endpoints of a Service that is deleted. */
export interface ServerWays {
  /** The API server does it. */
  readonly deletesEndpoints: boolean;
  /** How far the endpoints controller is behind at most; undefined: there is none. */
  readonly controllerLagMs: number | undefined;
  readonly seed: number;
}

interface NamespaceState {
  readonly name: string;
  readonly state: 'active' | 'terminating' | 'gone';
  /** The last revision without it. */
  readonly after: number;
}

export const BEFORE_137: ServerWays = { deletesEndpoints: true, controllerLagMs: 0, seed: 0 };

export class SimCluster extends MemoryCluster {
  admission: Admission = (_plural, object) => object;
  readonly #streams = new Set<() => void>();
  /** In the order in which they began. */
  #namespaceStates: readonly NamespaceState[] = [];
  #outage: 'refused' | 'proxied' | undefined;

  constructor(name: ClusterName, clock: VirtualClock, { deletesEndpoints }: ServerWays = BEFORE_137) {
    const services = new ServiceStorage(name);
    super({
      name,
      now: () => clock.now(),
      deletesEndpoints,
      admit: (plural, object, previous) =>
        storedLists(
          plural,
          this.admission(plural, plural === 'services' ? services.stored(object, previous) : object),
        ),
    });
  }

  /** While the server is down: connections are refused, or a proxy in front of it answers. */
  get outage(): 'refused' | 'proxied' | undefined {
    return this.#outage;
  }

  /** `dropped` is called when the server goes down. */
  openStream(dropped: () => void): () => void {
    this.#streams.add(dropped);
    return () => this.#streams.delete(dropped);
  }

  override setNamespace(name: string, state: NamespaceState['state']): void {
    this.#namespaceStates = [...this.#namespaceStates, { name, state, after: this.revision }];
    super.setNamespace(name, state);
  }

  get terminatingNamespaces(): readonly string[] {
    const states = new Map(this.#namespaceStates.map(({ name, state }) => [name, state]));
    return [...states].flatMap(([name, state]) => (state === 'terminating' ? [name] : []));
  }

  /** The server stops, and a backup from some revisions ago takes the place of its data, as far as history reaches. No Event is lost by it: the
   * later ones have an etcd of their own, and those that went with a namespace come back with its objects. No request of a daemon reaches it
   * until {@link comeBack}; other clients see the restored objects. */
  restore(back: number, outage: 'refused' | 'proxied'): void {
    this.#outage = outage;
    for (const drop of this.#streams) drop();
    const revision = Math.max(this.oldestRevision, this.revision - back);
    this.#restoreTo(revision);
  }

  /** `atLeast`: other resources have used up the revisions below. */
  comeBack(atLeast = 0): void {
    this.newest = Math.max(this.newest, atLeast);
    this.#outage = undefined;
  }

  #restoreNamespaces(revision: number): void {
    const names = new Set(this.#namespaceStates.map(({ name }) => name));
    this.#namespaceStates = this.#namespaceStates.filter(({ after }) => after < revision);
    for (const name of names) {
      const last = this.#namespaceStates.findLast((one) => one.name === name);
      super.setNamespace(name, last?.state ?? 'active');
    }
  }

  /** Later changes are forgotten. */
  #restoreTo(revision: number): void {
    const restored = [...this.objects.keys()].map((plural) => {
      const later = plural === 'events' ? this.list(plural) : [];
      return [plural, [...this.listAt(plural, revision), ...later]] as const;
    });
    this.newest = revision;
    this.#restoreNamespaces(revision);
    this.history = this.history.filter((change) => change.revision <= revision);
    for (const [plural, objects] of restored) {
      const before = new Map(this.objects.get(plural));
      const after = new Map(objects.map((object) => [objectKey(object), object]));
      this.objects.set(plural, after);
      const change = { plural, revision, manager: RESTORE_MANAGER };
      for (const [key, object] of before)
        if (!after.has(key)) this.publish({ ...change, object, previous: object, isDeletion: true });
      for (const [key, object] of after) {
        const previous = before.get(key);
        if (previous !== object) this.publish({ ...change, object, previous, isDeletion: false });
      }
    }
  }
}

/** The storage of an API server knows no empty list: it comes back as null, or not at all where the field may be omitted. */
function storedLists(plural: string, object: KubeObject): KubeObject {
  if (plural === 'endpointslices') {
    const { endpoints, ports } = object;
    return {
      ...object,
      ...(isEmpty(endpoints) && { endpoints: null }),
      ...(isEmpty(ports) && { ports: null }),
    };
  }
  if (plural !== 'endpoints' || !isEmpty(object['subsets'])) return object;
  const { subsets: _, ...rest } = object;
  return rest as KubeObject; // the same without a member
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
