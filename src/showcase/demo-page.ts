/** The page of the demo: the playground with the demo's configuration, and both clusters as they change. */

import { parseYaml } from '../base/yaml/document.ts';
import type { Config } from '../syncer/config/config.ts';
import type { PageServer } from './page-server.ts';
import { startPage } from './playground.ts';
import { systemClock } from '../base/clock.ts';
import { isJsonObject, ownValue, textAt, valueAt, type JsonObject, type JsonValue } from '../base/json.ts';
import { silentLogger } from '../base/logger.ts';
import { systemRandom } from '../base/random.ts';
import { CachingInformer, type InformerMetrics } from '../kube/informer/informer.ts';
import { asJson, asObject, objectKey, type KubeObject, type Resource } from '../kube/object.ts';
import type { CacheEvent, ClusterName, Lister, WatchClient } from '../kube/types.ts';
import { statedOrigin, withoutBookkeeping } from '../syncer/translate/bookkeeping.ts';
import type { ActivityEntry } from './demo-activity.ts';
import type { State } from '../syncer/rehearsal/sync-status.ts';
import { printObject } from '../cli/output/objects.ts';

interface DemoPageOptions extends DemoFeedOptions {
  readonly port: number;
  /** The configuration in use. */
  readonly config: () => Config;
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
  const feed = new DemoFeed(options, closing.signal);
  const calls = { '/api/demo/object': feed.read, '/api/demo/save': feed.save };
  const feeds = { '/api/demo/feed': feed.feed };
  const { url } = undo.use(await startPage({ ...options, calls, feeds }));
  const parts = undo.move();
  return { url, feed, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

// The live part of the demo's page: each virtual object beside its host copy, and the outcome of each sync.

/** One row of the page: an original and its copy. */
interface PairRow extends JsonObject {
  /** Of the virtual object, such as `Endpoints shop/db`, or of a host object that belongs to none. */
  id: string;
  kind: string;
  /** `shop/db`; null: the object is on the other side only. */
  virtual: string | null;
  host: string | null;
  state: State | 'host only';
  why: string;
  last: JsonObject | null;
}

interface DemoFeedOptions {
  readonly clients: Readonly<Record<ClusterName, WatchClient>>;
  readonly resources: readonly Resource[];
  readonly namespaces: Readonly<Record<ClusterName, string>>;
}

interface LogLine extends JsonObject {
  readonly seq: number;
  readonly time: string;
  readonly id: string;
  readonly what: string;
  readonly isProblem: boolean;
  readonly latencyMs: number | null;
  /** `owner payments → team-payments`; null: not known yet. */
  change: string | null;
}

/** What an informer saw of a pair on one side. */
interface SeenChange {
  readonly text: string;
  readonly atMs: number;
}

const LOG_MAX = 200;
/** Changes of one sync are sent together. */
const SEND_AFTER_MS = 50;
/** A write is seen in its watch at most this long before its response is logged. */
const WATCH_AHEAD_MS = 50;
const NO_METRICS: InformerMetrics = {
  expect: () => undefined,
  ended: () => undefined,
  received: () => undefined,
  ignored: () => undefined,
  watchState: () => () => undefined,
};

class DemoFeed {
  readonly #options: DemoFeedOptions;
  readonly #objects: Readonly<Record<ClusterName, ReadonlyMap<string, Lister>>>;
  readonly #log: LogLine[] = [];
  /** The last reconcile of each virtual object. */
  readonly #entries = new Map<string, ActivityEntry>();
  readonly #lines = new Map<string, LogLine>();
  readonly #changes = new Map<string, SeenChange>();
  readonly #listeners = new Set<() => void>();
  #isSending = false;
  #configurations = 0;
  #seq = 0;

  constructor(options: DemoFeedOptions, signal: AbortSignal) {
    this.#options = options;
    const watch = (cluster: ClusterName): ReadonlyMap<string, Lister> =>
      new Map(options.resources.map((resource) => [resource.kind, this.#watch(cluster, resource, signal)]));
    this.#objects = { virtual: watch('virtual'), host: watch('host') };
  }

  #watch(cluster: ClusterName, resource: Resource, signal: AbortSignal): Lister {
    const { clients, namespaces } = this.#options;
    const informer = new CachingInformer({
      client: clients[cluster],
      resource,
      namespaces: [namespaces[cluster]],
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      metrics: NO_METRICS,
    });
    informer.subscribe((event) => {
      if (event.type !== 'deleted') this.#see(cluster, resource.kind, event);
      this.#changed();
    });
    void informer.run(signal); // it never rejects
    return informer;
  }

  /** Remembers what a change of an object changed. For a new copy, that is its difference from the original. */
  #see(cluster: ClusterName, kind: string, { object, previous }: CacheEvent): void {
    const id = cluster === 'host' ? originOf(kind, object) : `${kind} ${objectKey(object)}`;
    if (id === undefined) return;
    const before = previous ?? (cluster === 'host' ? this.#find('virtual', id) : undefined);
    const text = before === undefined ? '' : describeChange(before, object);
    const line = this.#lines.get(id);
    if (line?.change === null && line.what.startsWith(cluster)) line.change = text;
    else this.#changes.set(`${cluster} ${id}`, { text, atMs: systemClock.monotonicMs() });
  }

  #find(cluster: ClusterName, id: string): KubeObject | undefined {
    const [kind = '', key = ''] = id.split(' ');
    return this.#objects[cluster].get(kind)?.get(key);
  }

  record(entry: ActivityEntry): void {
    const { id, state, what, latencyMs } = entry;
    const isWrong = isProblem(state);
    const isRepeated = isWrong && this.#entries.get(id)?.what === what;
    this.#entries.set(id, entry);
    if ((state === 'synced' || isWrong) && !isRepeated) {
      const seen = this.#changes.get(`${what.split(' ')[0] ?? ''} ${id}`);
      const sinceMs = systemClock.monotonicMs() - (latencyMs ?? 0) - WATCH_AHEAD_MS;
      const line: LogLine = {
        seq: (this.#seq += 1),
        time: new Date().toTimeString().slice(0, 8),
        id,
        what,
        isProblem: isWrong,
        latencyMs: latencyMs ?? null,
        change: seen !== undefined && seen.atMs >= sinceMs ? seen.text : null,
      };
      this.#log.unshift(line);
      this.#log.length = Math.min(this.#log.length, LOG_MAX);
      this.#lines.set(id, line);
    }
    this.#changed();
  }

  /** Another configuration is in use: pages read it again. */
  configured(): void {
    this.#configurations += 1;
    this.#changed();
  }

  /** Sends the state immediately and after each change, until the signal is aborted. */
  readonly feed = (send: (event: JsonObject) => void, signal: AbortSignal): void => {
    const listener = (): void =>
      send({ rows: this.#rows(), log: [...this.#log], configurations: this.#configurations });
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener));
    listener();
  };

  /** `{cluster, id}` → the object as YAML, without what only the API server sets at each write. */
  readonly read = async (body: JsonObject): Promise<JsonValue> => {
    const object = this.#find(clusterOf(body), textAt(body, 'id'));
    if (object === undefined) throw new Error('this object does not exist any more');
    return { text: editedText(object) };
  };

  /** Writes an edited object, `{cluster, object: YAML}`, as `kubectl replace` does, and returns it as {@link read} does. */
  readonly save = async (body: JsonObject): Promise<JsonValue> => {
    const cluster = clusterOf(body);
    const { json: object, problems } = parseYaml(textAt(body, 'object'));
    const [error] = problems.filter(({ severity }) => severity === 'error');
    if (error !== undefined) throw new Error(error.message);
    if (!isJsonObject(object) || !isJsonObject(object['metadata']))
      throw new Error('this is not a Kubernetes object');
    const resource = this.#options.resources.find(({ kind }) => kind === object['kind']);
    if (resource === undefined)
      throw new Error(`kind ${JSON.stringify(object['kind'])} cannot be edited here`);
    return { text: editedText(await this.#options.clients[cluster].update(resource, asObject(object))) };
  };

  #changed(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setTimeout(() => {
      this.#isSending = false;
      for (const listener of this.#listeners) listener();
    }, SEND_AFTER_MS).unref();
  }

  #rows(): PairRow[] {
    const { virtual, host } = this.#objects;
    const rows = this.#options.resources.flatMap(({ kind }) => {
      const copies = [...(host.get(kind)?.list() ?? [])];
      const keys = new Map(copies.map((copy) => [originOf(kind, copy), objectKey(copy)]));
      const pairs = [...(virtual.get(kind)?.list() ?? [])].map((object) =>
        this.#pair(kind, objectKey(object), keys),
      );
      const own = copies.filter((copy) => this.#find('virtual', originOf(kind, copy) ?? '') === undefined);
      return [...pairs, ...own.map((object) => hostOnly(kind, objectKey(object)))];
    });
    return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** `copies`: keys on the host by the id of the original. */
  #pair(kind: string, key: string, copies: ReadonlyMap<string | undefined, string>): PairRow {
    const id = `${kind} ${key}`;
    const host = copies.get(id) ?? null;
    const entry = this.#entries.get(id);
    const row = { id, kind, virtual: key, host, why: '', last: this.#lines.get(id) ?? null };
    const { state = 'unchanged', what: why = '' } = entry ?? {};
    if (isProblem(state)) return { ...row, state, why };
    if (host !== null) return { ...row, state: 'synced' };
    if (state === 'skipped') return { ...row, state, why };
    if (kind !== 'ConfigMap') return { ...row, state: 'pending' };
    // References are found through the objects that name them.
    return { ...row, state: 'skipped', why: 'no patch refers to it' };
  }
}

type Problem = Exclude<ActivityEntry['state'], 'synced' | 'unchanged' | 'skipped'>;

function isProblem(state: ActivityEntry['state']): state is Problem {
  return !['synced', 'unchanged', 'skipped'].includes(state);
}

function hostOnly(kind: string, key: string): PairRow {
  const why = 'it is not a copy of an object that exists';
  return { id: `${kind} ${key} (host)`, kind, virtual: null, host: key, state: 'host only', why, last: null };
}

/** The id of the virtual object of a copy; undefined: it is not a copy. */
function originOf(kind: string, object: KubeObject): string | undefined {
  const key = statedOrigin(object);
  return key === undefined ? undefined : `${kind} ${key}`;
}

function clusterOf(body: JsonObject): ClusterName {
  const cluster = ownValue(body, 'cluster');
  if (cluster !== 'virtual' && cluster !== 'host') throw new Error('cluster must be virtual or host');
  return cluster;
}

/** Without a resource version, saving replaces whatever the object is by then: the samples change every few seconds. */
function editedText(object: KubeObject): string {
  const { managedFields: _, resourceVersion: __, ...metadata } = object.metadata;
  return printObject({ ...asJson(object), metadata: metadata as JsonObject }, 'yaml'); // of JSON too
}

// What changed between two states of an object, in a few words.

const CHANGES_SHOWN = 2;
const VALUE_CHARS_MAX = 40;

/** `owner payments → team-payments, + ip 10.20.0.13, 2 more`; '' if only bookkeeping changed. */
export function describeChange(before: KubeObject, after: KubeObject): string {
  const all = changesBetween(contentOf(before), contentOf(after), '');
  const more = all.length - CHANGES_SHOWN;
  return [...all.slice(0, CHANGES_SHOWN), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Without what the translation and the API server set in every object. */
function contentOf(object: KubeObject): JsonObject {
  const { labels = {}, annotations = {} } = withoutBookkeeping(object).metadata;
  const { apiVersion: _, kind: __, ...content } = asJson(object);
  return { ...content, metadata: { labels, annotations } };
}

function changesBetween(before: JsonValue | undefined, after: JsonValue | undefined, name: string): string[] {
  if (before === undefined) return [`+ ${name} ${firstScalar(after)}`];
  if (after === undefined) return [`− ${name} ${firstScalar(before)}`];
  if (typeof before !== 'object' || typeof after !== 'object' || before === null || after === null)
    return before === after ? [] : [`${name} ${shown(before)} → ${shown(after)}`];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const memberOf = (value: JsonValue, key: string): JsonValue | undefined =>
    valueAt(value, [Array.isArray(value) ? Number(key) : key]);
  return [...keys].flatMap((key) => {
    // `example.com/owner` → `owner`
    const label = /^\d+$/.test(key) ? name : key.slice(key.lastIndexOf('/') + 1);
    return changesBetween(memberOf(before, key), memberOf(after, key), label);
  });
}

/** Tells which element of a list was added or removed. */
function firstScalar(value: JsonValue | undefined): string {
  if (typeof value !== 'object' || value === null) return shown(value ?? null);
  const [first] = Object.values(value);
  return first === undefined ? '' : firstScalar(first);
}

function shown(value: JsonValue): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX)}…`;
}
