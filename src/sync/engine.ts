/** Everything that syncs Endpoints under one configuration. A reload stops the running engine and starts another one. */

import { createInformer, type InformerMetrics, type ObservableInformer } from '../cluster/informer.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../cluster/types.ts';
import type { Config } from '../config/types.ts';
import { isAlreadyExists } from '../kube/status-error.ts';
import {
  ENDPOINTS,
  NAMESPACES,
  SERVICES,
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../kube/object.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { Logger } from '../observe/logger.ts';
import type { PatchPipeline } from '../patch/types.ts';
import { createSemaphore } from '../queue/semaphore.ts';
import { createWorkQueue, type QueueMetrics } from '../queue/work-queue.ts';
import type { OwnerReference } from '../translate/forge.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import { createWriter, type WriteMetrics } from '../write/writer.ts';
import { createContentionGuard } from './contention.ts';
import { createController, type Controller, type ControllerMetrics } from './controller.ts';
import { createCopyForge } from './copy-forge.ts';
import { BY_HOST_KEY, createObserver, hostIndexes, virtualIndexes } from './observer.ts';
import { createReconciler } from './reconciler.ts';
import { createRecreationBackoff } from './recreation.ts';
import { recordedKinds } from './references/sweep.ts';
import type { EndpointsSide, References } from './references/references.ts';
import { keysOfHostEvent, keysOfVirtualEvent } from './sources.ts';
import type { SyncedPairs } from './synced-pairs.ts';

export interface EngineMetrics {
  readonly queue: QueueMetrics;
  readonly writes: WriteMetrics;
  readonly controller: ControllerMetrics;
  informer(cluster: ClusterName, resource: Resource): InformerMetrics;
}

export interface EngineOptions {
  readonly config: Config;
  readonly clients: { readonly virtual: WatchClient; readonly host: WatchClient };
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly pipeline: PatchPipeline;
  /** Owns the copies in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
  readonly recorder: EventRecorder;
  readonly references: References;
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: EngineMetrics;
}

export interface Engine {
  readonly informers: readonly ObservableInformer[];
  /** Sources, then caches in sync, then workers; resolves when {@link stop} has drained them. */
  run(): Promise<void>;
  /** True once the workers run. */
  readonly isWorking: boolean;
  /** Takes no more events, finishes what is queued, closes the watches. */
  stop(): Promise<void>;
}

export function createEngine(options: EngineOptions): Engine {
  return new SyncEngine(options);
}

class SyncEngine implements Engine {
  readonly #options: EngineOptions;
  readonly #virtual: ObservableInformer;
  readonly #services: ObservableInformer;
  readonly #host: ObservableInformer;
  readonly #queue;
  readonly #controller: Controller;
  readonly #stopping = new AbortController();
  readonly #recreation;
  #running: Promise<void> | undefined;
  #isWorking = false;

  constructor(options: EngineOptions) {
    const { clock, metrics, names } = options;
    this.#options = options;
    this.#virtual = this.#informer('virtual', ENDPOINTS, virtualIndexes(names));
    this.#services = this.#informer('virtual', SERVICES, {});
    this.#host = this.#informer('host', ENDPOINTS, hostIndexes(names));
    this.#queue = createWorkQueue({ clock, metrics: metrics.queue });
    this.#recreation = createRecreationBackoff(clock);
    this.#controller = this.#createController();
    this.#connect();
  }

  get informers(): readonly ObservableInformer[] {
    return [this.#virtual, this.#services, this.#host];
  }

  get isWorking(): boolean {
    return this.#isWorking;
  }

  run(): Promise<void> {
    this.#running ??= this.#work();
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#queue.shutDown();
    if (!this.#isWorking) this.#stopping.abort();
    await this.#running;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    const { references } = this.#options;
    references.start(signal, this.#endpointsSide());
    const watching = this.informers.map((informer) => informer.run(signal));
    try {
      await Promise.all(this.informers.map((informer) => informer.whenSynced(signal)));
      await references.whenSynced(signal);
      await references.recover([...this.#host.list()].flatMap(recordedKinds), signal);
      this.#isWorking = true;
      await Promise.all([
        this.#controller.run().finally(() => references.shutDown()),
        references.run([...this.#virtual.list()].map(objectKey)),
      ]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#isWorking = false;
      this.#stopping.abort();
      await Promise.all([...watching, references.closed()]);
    }
  }

  #endpointsSide(): EndpointsSide {
    const { names } = this.#options;
    return {
      virtual: (key) => this.#virtual.get(key),
      hostCopy: (key) => {
        const target = names.toHost(parseKey(key));
        return target && this.#host.get(keyOf(target));
      },
      enqueue: (key) => this.#controller.enqueue(key),
    };
  }

  #informer(
    cluster: ClusterName,
    resource: Resource,
    indexes: Record<string, (object: KubeObject) => readonly string[]>,
  ): ObservableInformer {
    const { clients, config, clock, random, logger, metrics } = this.#options;
    const isOneNamespace = cluster === 'host' && config.sync.namespaces.kind === 'single';
    return createInformer({
      client: clients[cluster],
      resource,
      ...(isOneNamespace ? { namespace: config.host.namespace } : {}),
      indexes,
      transform: withoutOwnedFields,
      clock,
      random,
      logger,
      metrics: metrics.informer(cluster, resource),
    });
  }

  #createController(): Controller {
    const { config, clients, names, labels, pipeline, recorder, clock, logger, metrics, references } =
      this.#options;
    const pairs: SyncedPairs = new Map();
    const decide = { requireService: config.requireService };
    const [virtual, services, host] = [this.#virtual, this.#services, this.#host];
    const inFlight = createSemaphore(config.workers);
    const writer = (cluster: ClusterName, cache: ObservableInformer) =>
      createWriter({
        client: clients[cluster],
        resource: ENDPOINTS,
        cache,
        inFlight,
        isDryRun: this.#options.isDryRun,
        logger,
        metrics: metrics.writes,
      });
    const reconcile = createReconciler({
      observe: createObserver({ virtual, services, host, translator: names, pairs, decide }),
      decide,
      onHostDelete: config.onHostDelete,
      forge: createCopyForge({
        names,
        labels,
        pipeline,
        owner: this.#options.owner,
        learn: (found) => references.open(found),
      }),
      pairs,
      host: { client: clients.host, cache: host, writer: writer('host', host) },
      virtual: { client: clients.virtual, services, writer: writer('virtual', virtual) },
      recreation: this.#recreation,
      contention: createContentionGuard(clock),
      recorder,
      references,
      released: (target) => {
        for (const key of virtual.byIndex(BY_HOST_KEY, keyOf(target))) this.#controller.enqueue(key);
      },
    });
    const createNamespace =
      config.createNamespaces && !this.#options.isDryRun ? this.#namespaceMaker() : undefined;
    return createController({
      queue: this.#queue,
      name: 'endpoints',
      reconcile,
      warn: (key, warning) => {
        const object = virtual.get(key);
        if (object !== undefined) recorder.event(object, ENDPOINTS, { type: 'Warning', ...warning });
      },
      createNamespace,
      clock,
      logger,
      metrics: metrics.controller,
    });
  }

  /** Events only name keys; what they mean is read from the caches later. */
  #connect(): void {
    const context = { virtual: this.#virtual, translator: this.#options.names };
    const enqueueAll = (keys: readonly ObjectKey[]): void => {
      for (const key of keys) this.#controller.enqueue(key);
    };
    this.#virtual.subscribe((event) => enqueueAll(keysOfVirtualEvent(event, context)));
    this.#services.subscribe((event) => enqueueAll(keysOfVirtualEvent(event, context)));
    this.#host.subscribe((event) => {
      const keys = keysOfHostEvent(event, context);
      // Our own deletions cause no event, so this one is somebody else's.
      if (event.type === 'deleted') for (const key of keys) this.#recreation.noteDeletion(key);
      enqueueAll(keys);
    });
  }

  #namespaceMaker(): (key: ObjectKey) => Promise<void> {
    const { clients, names, logger } = this.#options;
    return async (key) => {
      const name = names.namespaceToHost(parseKey(key).namespace);
      if (name === undefined) return;
      try {
        await clients.host.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
        logger.info({ namespace: name }, 'host namespace created');
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    };
  }
}

/** `fieldsV1` is half of a typical object's bytes, and nobody here reads it; who wrote, and when, stays. */
function withoutOwnedFields(object: KubeObject): KubeObject {
  for (const entry of object.metadata.managedFields ?? []) delete entry['fieldsV1'];
  return object;
}
