/** The client of one process for one API server: with latency, and with every fault that a network and a server can have. */

import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { listPage } from '../../../src/kube/memory-cluster.ts';
import { failure } from '../../../src/kube/status-error.ts';
import {
  cloneObject,
  isTerminating,
  keyOf,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../../src/kube/object.ts';
import type {
  ClusterName,
  DeletePreconditions,
  ListOptions,
  ObjectList,
  PatchOptions,
  PatchType,
  RequestOptions,
  WatchClient,
  WatchHandler,
  WatchOptions,
  WriteOptions,
} from '../../../src/kube/types.ts';
import type { Faults, RequestKind } from './faults.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import type { ProcessClock } from './process-clock.ts';
import type { SimCluster } from './sim-cluster.ts';
import { lostAnswer, SimWatch } from './sim-watch.ts';

export interface SimClientOptions {
  readonly cluster: SimCluster;
  readonly clock: VirtualClock;
  readonly process: ProcessClock;
  readonly faults: Faults;
  /** Field manager where a request names none. */
  readonly manager: string;
  /** A write of this process was committed. */
  readonly committed: (resource: Resource) => void;
  /** A deletion of what is being deleted already. */
  readonly deletedAgain?: (object: KubeObject) => void;
  /** No list is older than its request, as a real API server promises. */
  readonly isConsistent?: boolean;
}

/** The API groups that are served. */
const KINDS: Readonly<Record<string, readonly JsonValue[]>> = {
  '/api/v1': [
    served('endpoints', 'Endpoints'),
    served('services', 'Service'),
    served('configmaps', 'ConfigMap'),
    served('secrets', 'Secret'),
  ],
};

const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** A page of a list holds no more, whatever its limit. */
const PAGE_MAX = 3;
const TIMEOUT_MS = 30_000;

function served(name: string, kind: string): JsonValue {
  return { name, kind, namespaced: true, verbs: ['get', 'list', 'watch'] };
}

export class SimClient implements WatchClient {
  readonly cluster: ClusterName;
  readonly #options: SimClientOptions;

  constructor(options: SimClientOptions) {
    this.#options = options;
    this.cluster = options.cluster.name;
  }

  get(resource: Resource, name: NamespacedName, options?: RequestOptions): Promise<KubeObject> {
    return this.#request('read', options, () =>
      cloneObject(this.#options.cluster.existing(resource.plural, keyOf(name))),
    );
  }

  list(resource: Resource, options: ListOptions = {}): Promise<ObjectList> {
    // The program has the rights that `rbac` prints: in the namespaces of the copies.
    if (this.cluster === 'host' && options.namespace === undefined)
      return Promise.reject(
        failure(403, 'Forbidden', `${resource.plural} cannot be listed in all namespaces`),
      );
    return this.#request('list', options, () => {
      const { cluster, faults } = this.#options;
      const { continueToken = '' } = options;
      const { oldestRevision, revision } = cluster;
      // What decides who may write is read consistently.
      const mayBeStale = resource.plural !== 'leases' && continueToken === '' && faults.isListStale();
      const isStale = mayBeStale && this.#options.isConsistent !== true;
      return listPage(cluster, resource.plural, {
        ...options,
        limit: options.limit === undefined ? Infinity : Math.min(options.limit, PAGE_MAX),
        continueToken,
        atRevision: isStale ? faults.between(oldestRevision, revision) : revision,
      });
    });
  }

  create(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const { cluster } = this.#options;
    const commit = (manager: string, isDryRun: boolean): KubeObject =>
      cluster.create(resource.plural, cloneObject(object), { manager, isDryRun });
    // Of admission, the namespace comes first.
    return this.#write(resource, options, commit, () =>
      cluster.hasNamespace(object.metadata.namespace ?? ''),
    );
  }

  update(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const body = cloneObject(object);
    return this.#write(resource, options, (manager, isDryRun) =>
      this.#options.cluster.update(resource.plural, body, { manager, isDryRun }),
    );
  }

  patch(
    resource: Resource,
    name: NamespacedName,
    patch: { type: PatchType; body: JsonValue },
    options: PatchOptions = {},
  ): Promise<KubeObject> {
    if (patch.type !== 'merge') throw new Error('only merge patches are simulated');
    const body = cloneJson(patch.body as JsonObject); // as all merge patches of the program
    const isStatus = options.subresource === 'status';
    return this.#write(resource, options, (manager, isDryRun) =>
      this.#options.cluster.mergePatch(resource.plural, name, body, { manager, isDryRun, isStatus }),
    );
  }

  async delete(
    resource: Resource,
    name: NamespacedName,
    preconditions: DeletePreconditions,
    options: WriteOptions = {},
  ): Promise<void> {
    await this.#write(resource, options, (manager, isDryRun) => {
      const { cluster, deletedAgain } = this.#options;
      const there = cluster.get(resource.plural, keyOf(name));
      if (there !== undefined && isTerminating(there) && !isDryRun) deletedAgain?.(there);
      cluster.delete(resource.plural, name, { ...preconditions, manager, isDryRun });
      return undefined;
    });
  }

  request(_method: string, path: string, _body?: JsonValue, options?: RequestOptions): Promise<JsonValue> {
    return this.#request('read', options, () => {
      if (path === ACCESS_REVIEWS) return { status: { allowed: true } };
      const resources = KINDS[path];
      if (resources === undefined) throw failure(404, 'NotFound', `${path} not found`);
      return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'v1', resources: [...resources] };
    });
  }

  watch(resource: Resource, options: WatchOptions, handler: WatchHandler): Promise<void> {
    const { process, clock } = this.#options;
    return new Promise((resolve, reject) => {
      clock.schedule(this.#options.faults.latencyMs(), () =>
        process.run(() => {
          const refused = this.#outageError() ?? this.#options.faults.refusalOf('list');
          if (refused !== undefined) return reject(refused);
          new SimWatch({ ...this.#options, resource, scope: options, handler, resolve, reject }).start();
        }),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #write<T extends KubeObject | undefined>(
    resource: Resource,
    options: WriteOptions,
    commit: (manager: string, isDryRun: boolean) => T,
    mayReject?: () => boolean,
  ): Promise<T> {
    const { fieldManager = this.#options.manager, isDryRun = false } = options;
    const kind = resource.plural === 'events' ? 'unrejected' : 'write';
    const act = (): T => {
      const stored = commit(fieldManager, isDryRun);
      if (!isDryRun) this.#options.committed(resource);
      return (stored === undefined ? undefined : cloneObject(stored)) as T; // the same object
    };
    return this.#request(kind, options, act, mayReject);
  }

  #outageError(): Error | undefined {
    const { outage } = this.#options.cluster;
    if (outage === undefined) return undefined;
    return outage === 'refused' ? lostAnswer() : failure(503, 'ServiceUnavailable', 'no backend');
  }

  /** There, perhaps refused, done, and back, perhaps lost or garbled on the way. */
  #request<T>(
    kind: RequestKind,
    options: RequestOptions | undefined,
    act: () => T,
    mayReject?: () => boolean,
  ): Promise<T> {
    const { process } = this.#options;
    const signal = options?.signal;
    let aborted = (): void => undefined;
    const response = new Promise<T>((resolve, reject) => {
      aborted = () => process.run(() => reject(signal?.reason as Error));
      signal?.addEventListener('abort', aborted, { once: true });
      if (signal?.aborted === true) return reject(signal.reason as Error);
      const send = (): void =>
        this.#send({ kind, timeoutMs: options?.timeoutMs, act, mayReject }, { resolve, reject });
      if (options?.beforeSend === undefined) return send();
      // A request waits for a connection, and the process may be paused in between.
      process.schedule(1, () => {
        try {
          options.beforeSend?.();
        } catch (error) {
          return reject(error as Error);
        }
        send();
      });
    });
    // Node keeps a composite signal, and all that its listeners hold, for as long as it has a listener.
    return response.finally(() => signal?.removeEventListener('abort', aborted));
  }

  #send<T>(
    { kind, timeoutMs = TIMEOUT_MS, act, mayReject }: Sent<T>,
    { resolve, reject }: { readonly resolve: (result: T) => void; readonly reject: (error: Error) => void },
  ): void {
    const { clock, process, faults } = this.#options;
    const answer = (settle: () => void, delayMs = faults.latencyMs()): void =>
      void clock.schedule(delayMs, () => process.run(settle));
    clock.schedule(faults.latencyMs(), () => {
      // A request that left a process reaches the server even if the process has crashed since.
      const outage = this.#outageError();
      if (outage !== undefined) return answer(() => reject(outage));
      const fault = faults.requestFault(mayReject?.() === false ? 'unrejected' : kind);
      const waitMs = fault?.isHung === true ? timeoutMs : undefined;
      if (fault?.when === 'before') return answer(() => reject(fault.error), waitMs);
      let result: T;
      try {
        result = act();
      } catch (error) {
        return answer(() => reject(error as Error));
      }
      answer(() => (fault === undefined ? resolve(result) : reject(fault.error)), waitMs);
    });
  }
}

interface Sent<T> {
  readonly kind: RequestKind;
  readonly timeoutMs: number | undefined;
  readonly act: () => T;
  /** Asked when it reaches the server; undefined: true. */
  readonly mayReject: (() => boolean) | undefined;
}
