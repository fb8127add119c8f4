/** How one process reaches one API server: with latency, and with every fault that a network and a server can have. */

import type { JsonValue } from '../../../src/base/json.ts';
import {
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../../src/kube/object.ts';
import type {
  ClusterName,
  DeletePreconditions,
  ListOptions,
  ObjectList,
  PatchType,
  RequestOptions,
  WatchClient,
  WatchHandler,
  WatchOptions,
  WriteOptions,
} from '../../../src/kube/types.ts';
import type { Faults } from './faults.ts';
import type { ProcessClock, SimClock } from './sim-clock.ts';
import { refusal, type SimCluster } from './sim-cluster.ts';
import { SimWatch } from './sim-watch.ts';
import { copyOf, matches, metadataOnly } from './wire.ts';

export interface SimClientOptions {
  readonly cluster: SimCluster;
  readonly clock: SimClock;
  readonly process: ProcessClock;
  readonly faults: Faults;
  /** Field manager where a request names none. */
  readonly manager: string;
  /** A write of this process was committed. */
  readonly committed: () => void;
}

const KINDS: Readonly<Record<string, readonly JsonValue[]>> = {
  '/api/v1': [
    { name: 'endpoints', kind: 'Endpoints', namespaced: true, verbs: ['get', 'list', 'watch'] },
    { name: 'services', kind: 'Service', namespaced: true, verbs: ['get', 'list', 'watch'] },
    { name: 'configmaps', kind: 'ConfigMap', namespaced: true, verbs: ['get', 'list', 'watch'] },
    { name: 'secrets', kind: 'Secret', namespaced: true, verbs: ['get', 'list', 'watch'] },
  ],
};

export class SimClient implements WatchClient {
  readonly cluster: ClusterName;
  readonly #options: SimClientOptions;

  constructor(options: SimClientOptions) {
    this.#options = options;
    this.cluster = options.cluster.name;
  }

  get(resource: Resource, name: NamespacedName, options?: RequestOptions): Promise<KubeObject> {
    return this.#request('read', options, () => {
      const object = this.#options.cluster.get(resource.plural, keyOf(name));
      if (object === undefined)
        throw refusal(404, 'NotFound', `${resource.plural} "${keyOf(name)}" not found`);
      return copyOf(object);
    });
  }

  list(resource: Resource, options: ListOptions = {}): Promise<ObjectList> {
    return this.#request('list', options, () => {
      const { cluster, faults } = this.#options;
      const revision = faults.isListStale()
        ? faults.between(cluster.oldestRevision, cluster.revision)
        : cluster.revision;
      const found = cluster
        .listAt(resource.plural, revision)
        .filter((object) => matches(object, options))
        .toSorted((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1));
      const from = Number(options.continueToken ?? '') || 0;
      const page = found.slice(from, from + (options.limit ?? found.length));
      const next = from + page.length;
      return {
        resourceVersion: String(revision),
        continueToken: next < found.length ? String(next) : '',
        items: page.map((object) => copyOf(options.isMetadataOnly === true ? metadataOnly(object) : object)),
      };
    });
  }

  create(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    return this.#write(options, (manager, isDryRun) =>
      this.#options.cluster.create(resource.plural, copyOf(object), manager, isDryRun),
    );
  }

  update(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const body = copyOf(object);
    return this.#write(options, (manager, isDryRun) =>
      this.#options.cluster.update(resource.plural, body, manager, isDryRun),
    );
  }

  patch(
    resource: Resource,
    name: NamespacedName,
    patch: { type: PatchType; body: JsonValue },
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    if (patch.type !== 'merge') throw new Error('only merge patches are simulated');
    const body = copyOf(patch.body);
    return this.#write(options, (manager, isDryRun) =>
      this.#options.cluster.mergePatch(resource.plural, name, body, { manager, isDryRun }),
    );
  }

  async delete(
    resource: Resource,
    name: NamespacedName,
    { uid }: DeletePreconditions,
    options: WriteOptions = {},
  ): Promise<void> {
    await this.#write(options, (manager, isDryRun) => {
      this.#options.cluster.delete(resource.plural, name, { manager, uid, isDryRun });
      return undefined;
    });
  }

  request(_method: string, path: string, _body?: JsonValue, options?: RequestOptions): Promise<JsonValue> {
    return this.#request('read', options, () => {
      const resources = KINDS[path];
      if (resources === undefined) throw refusal(404, 'NotFound', `${path} not found`);
      return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'v1', resources: [...resources] };
    });
  }

  watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void> {
    const { process, clock } = this.#options;
    return new Promise((resolve, reject) => {
      clock.schedule(this.#options.faults.latencyMs(), () =>
        process.run(() => {
          const refused = this.#options.faults.refusalOf();
          if (refused !== undefined) return reject(refused);
          new SimWatch({ ...this.#options, resource, scope: options, handler, resolve, reject }).start();
        }),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #write<T extends KubeObject | undefined>(
    options: WriteOptions,
    commit: (manager: string, isDryRun: boolean) => T,
  ): Promise<T> {
    const { fieldManager = this.#options.manager, isDryRun = false } = options;
    return this.#request('write', options, () => {
      const stored = commit(fieldManager, isDryRun);
      if (!isDryRun) this.#options.committed();
      return (stored === undefined ? undefined : copyOf(stored)) as T; // the same object
    });
  }

  /** There, perhaps refused, done, and back, perhaps lost or garbled on the way. */
  #request<T>(
    kind: 'read' | 'list' | 'write',
    options: RequestOptions | undefined,
    act: () => T,
  ): Promise<T> {
    const { clock, process, faults } = this.#options;
    const signal = options?.signal;
    return new Promise<T>((resolve, reject) => {
      const answer = (settle: () => void): void =>
        void clock.schedule(faults.latencyMs(), () => process.run(settle));
      signal?.addEventListener('abort', () => process.run(() => reject(signal.reason as Error)), {
        once: true,
      });
      if (signal?.aborted === true) return;
      clock.schedule(faults.latencyMs(), () => {
        // A request that left a process reaches the server even if the process has crashed since.
        const fault = faults.requestFault(kind);
        if (fault?.when === 'before') return answer(() => reject(fault.error));
        let result: T;
        try {
          result = act();
        } catch (error) {
          return answer(() => reject(error as Error));
        }
        answer(() => (fault === undefined ? resolve(result) : reject(fault.error)));
      });
    });
  }
}
