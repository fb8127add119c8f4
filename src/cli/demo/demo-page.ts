/** The page of the demo: the playground with the demo's configuration, and both clusters as they change. */

import { parse } from 'yaml';
import type { Config } from '../../config/types.ts';
import { startPageServer, type PageServer } from '../page/page-server.ts';
import { PlaygroundSession } from '../page/playground-session.ts';
import { startState } from '../page/examples.ts';
import { systemClock } from '../../base/clock.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { silentLogger } from '../../base/logger.ts';
import { systemRandom } from '../../base/random.ts';
import { createInformer, type InformerMetrics } from '../../kube/informer/informer.ts';
import { asJson, objectKey, type KubeObject, type Resource } from '../../kube/object.ts';
import type { ClusterName, Lister, WatchClient } from '../../kube/types.ts';
import { OBJECT_KIND, OBJECT_NAME, OBJECT_NAMESPACE } from '../../syncer/translate/bookkeeping.ts';
import type { ActivityEntry } from './demo-activity.ts';
import { printObject } from '../output/objects.ts';

interface DemoPageOptions extends DemoFeedOptions {
  readonly port: number;
  readonly config: Config;
  /** Objects that the demo's patches match, as YAML. */
  readonly sample: string;
}

export interface DemoPage extends PageServer {
  readonly feed: DemoFeed;
}

export async function startDemoPage(options: DemoPageOptions): Promise<DemoPage> {
  await using undo = new AsyncDisposableStack();
  const closing = new AbortController();
  undo.defer(() => closing.abort());
  const session = undo.use(new PlaygroundSession(options.config));
  const feed = new DemoFeed(options, closing.signal);
  const { url } = undo.use(
    await startPageServer({
      port: options.port,
      calls: {
        '/api/run': (body) => session.run(body),
        '/api/start': async () => startState(options.config, options.sample),
        '/api/demo/save': feed.save,
      },
      feeds: { '/api/demo/feed': feed.feed },
    }),
  );
  const parts = undo.move();
  return { url, feed, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

// The live part of the demo's page: the objects of both clusters as they change, and the outcome of each sync.

/** An object as the page lists it. */
interface ShownObject extends JsonObject {
  /** `Endpoints shop/db` */
  id: string;
  kind: string;
  key: string;
  /** The id of the virtual object that a host copy belongs to. */
  counterpart: string | null;
  /** The outcome of the last sync. */
  outcome: JsonObject | null;
  /** YAML. */
  text: string;
}

interface DemoFeedOptions {
  readonly clients: Readonly<Record<ClusterName, WatchClient>>;
  /** The kinds that are shown. */
  readonly resources: readonly Resource[];
  /** Only objects of these namespaces. */
  readonly namespaces: Readonly<Record<ClusterName, string>>;
}

const LOG_MAX = 200;
/** Changes of one sync are sent together. */
const SEND_AFTER_MS = 50;
const NO_METRICS: InformerMetrics = {
  expect: () => undefined,
  ended: () => undefined,
  received: () => undefined,
  ignored: () => undefined,
  watchState: () => undefined,
};

interface Watched {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly objects: Lister;
}

class DemoFeed {
  readonly #options: DemoFeedOptions;
  readonly #watched: readonly Watched[];
  readonly #log: JsonObject[] = [];
  /** The outcome of the last sync of each key. */
  readonly #outcomes = new Map<string, JsonObject>();
  readonly #listeners = new Set<() => void>();
  #isSending = false;

  /** Watches until `signal` is aborted. */
  constructor(options: DemoFeedOptions, signal: AbortSignal) {
    this.#options = options;
    const clusters: readonly ClusterName[] = ['virtual', 'host'];
    this.#watched = clusters.flatMap((cluster) =>
      options.resources.map((resource) => ({
        cluster,
        resource,
        objects: this.#watch(cluster, resource, signal),
      })),
    );
  }

  #watch(cluster: ClusterName, resource: Resource, signal: AbortSignal): Lister {
    const informer = createInformer({
      client: this.#options.clients[cluster],
      resource,
      namespaces: [this.#options.namespaces[cluster]],
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      metrics: NO_METRICS,
    });
    informer.subscribe(() => this.#changed());
    void informer.run(signal); // it never rejects
    return informer;
  }

  /** One line of the sync log. */
  record(entry: ActivityEntry): void {
    const { key, what, latencyMs, problem } = entry;
    const line = {
      time: new Date().toTimeString().slice(0, 8),
      key,
      what,
      problem,
      latencyMs: latencyMs ?? null,
    };
    this.#log.unshift(line);
    this.#log.length = Math.min(this.#log.length, LOG_MAX);
    this.#outcomes.set(key, line);
    this.#changed();
  }

  /** Sends the state immediately and after each change, until the signal is aborted. */
  readonly feed = (send: (event: JsonObject) => void, signal: AbortSignal): void => {
    const listener = (): void => send(this.#state());
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener));
    listener();
  };

  /** Writes an edited object, `{cluster, object: YAML}`, as `kubectl replace` does. */
  readonly save = async (body: JsonObject): Promise<JsonValue> => {
    const cluster = ownValue(body, 'cluster');
    if (cluster !== 'virtual' && cluster !== 'host') throw new Error('cluster must be virtual or host');
    const text = ownValue(body, 'object');
    const object = parse(typeof text === 'string' ? text : '') as JsonValue; // YAML without custom tags is plain data
    if (!isJsonObject(object) || !isJsonObject(object['metadata']))
      throw new Error('this is not a Kubernetes object');
    const resource = this.#options.resources.find(({ kind }) => kind === object['kind']);
    if (resource === undefined)
      throw new Error(`kind ${JSON.stringify(object['kind'])} cannot be edited here`);
    const typed = object as unknown as KubeObject; // the API server validates it
    const saved = await this.#options.clients[cluster].update(resource, typed);
    return { resourceVersion: saved.metadata.resourceVersion ?? '' };
  };

  #changed(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setTimeout(() => {
      this.#isSending = false;
      for (const listener of this.#listeners) listener();
    }, SEND_AFTER_MS).unref();
  }

  #state(): JsonObject {
    const side = (cluster: ClusterName): ShownObject[] =>
      this.#watched
        .filter((watched) => watched.cluster === cluster)
        .flatMap(({ objects, resource }) =>
          [...objects.list()].map((object) => this.#describe(cluster, resource, object)),
        )
        .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return { virtual: side('virtual'), host: side('host'), log: [...this.#log] };
  }

  #describe(cluster: ClusterName, { kind }: Resource, object: KubeObject): ShownObject {
    const { annotations = {} } = object.metadata;
    const key = objectKey(object);
    const origin = `${annotations[OBJECT_NAMESPACE]}/${annotations[OBJECT_NAME]}`;
    const isCopy = cluster === 'host' && annotations[OBJECT_KIND] !== undefined;
    return {
      id: `${kind} ${key}`,
      kind,
      key,
      counterpart: isCopy ? `${kind} ${origin}` : null,
      outcome: this.#outcomes.get(activityKey(kind, isCopy ? origin : key)) ?? null,
      text: printObject(asJson(object), 'yaml'),
    };
  }
}

/** How the log of the daemon names an object: Endpoints by their key alone, references by their apiVersion too. */
function activityKey(kind: string, key: string): string {
  if (kind === 'Endpoints') return key;
  return kind === 'Service' ? `Service ${key}` : `v1 ${kind} ${key}`;
}
