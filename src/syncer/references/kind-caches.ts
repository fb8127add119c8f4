/** The watches of one referenced kind.
 * | cluster | scope | cached |
 * |---|---|---|
 * | virtual | all objects | whole objects if they can be imported into the host, else metadata |
 * | host | marker label of this virtual cluster | metadata of copies, ours and other syncers' |
 * | host namespaces | without that label, only for kinds that a patch names and that can be imported | metadata of objects to import, or in the way of a copy |
 * The third one is a watch instead of a GET per unresolved name, because an object must be imported as soon as it appears, and updated when
 * it changes. It needs no additional rights, since RBAC has no label selectors, and never holds the same objects as the second one. It
 * keeps a few hundred bytes per object; data are read when the object is imported. */

import { CachingInformer, type ObservableInformer } from '../../kube/informer/informer.ts';
import { createOwnedFieldsStripper } from '../../kube/informer/object-cache.ts';
import type { Logger } from '../../base/logger.ts';
import type { Semaphore } from '../../base/semaphore.ts';
import type { CacheEvent, ClusterClient, ClusterName, Informer, MalformedItem } from '../../kube/types.ts';
import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type ObjectMeta,
  type Resource,
} from '../../kube/object.ts';
import { isBookkeepingAnnotation, namedVirtual, OBJECT_IMPORTED } from '../translate/bookkeeping.ts';
import { isProgramLabel, MANAGED_BY_LABEL, CONTROLLED_BY } from '../translate/labels.ts';
import { createWriter, type Writer } from '../reconcile/writer.ts';
import type { ReferencedKind } from './referenced-kind.ts';
import { isPrivateLabel, SERVICE_ACCOUNT_NAME } from './refusals.ts';
import type { KindView } from './decide-reference.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { hostNamespaces } from '../translate/namespace-mappings.ts';
import { recordOf } from '../translate/last-synced.ts';

export type KindEvent = (cluster: ClusterName, event: CacheEvent) => void;

const BY_VIRTUAL_KEY = 'virtualKey';

export interface KindSide {
  readonly client: ClusterClient;
  readonly resource: Resource;
  readonly cache: Informer;
  readonly writer: Writer;
}

interface Refusal {
  readonly why: string;
  readonly resourceVersion: string | undefined;
}

export class KindCaches implements KindView {
  readonly kind: ReferencedKind;
  readonly virtualCache: ObservableInformer;
  readonly copies: ObservableInformer;
  /** Undefined if host objects of the kind are not imported. */
  readonly sources: ObservableInformer | undefined;
  readonly sides: Readonly<Record<ClusterName, KindSide>>;
  readonly #refusals = new Map<string, Refusal>();
  readonly #imports = new Set<string>();
  /** Uids of the copies on the host, by virtual key. */
  readonly #copies = new Map<ObjectKey, string | undefined>();
  readonly #vcluster: string;
  readonly #handlers: KindEvent[] = [];
  #malformed: ReadonlyMap<ObjectKey | undefined, string> = new Map();

  constructor(kind: ReferencedKind, environment: ReferenceEnvironment, inFlight: Semaphore) {
    const { names, config } = environment;
    const marker = `${MANAGED_BY_LABEL}=${names.vcluster}`;
    this.kind = kind;
    this.#vcluster = names.vcluster;
    this.virtualCache = informer('virtual', environment, {
      resource: kind.virtual,
      series: kind.virtual.plural,
      onMalformed: (items) => this.#leftOut(items, environment.logger),
      ...(isWhole(kind) ? { transform: withoutManagers } : { isMetadataOnly: true, transform: metadataOf }),
    });
    const slimMetadataOf = slimMetadata(config.references.onlyLabelled);
    const withoutOwnedFields = createOwnedFieldsStripper();
    this.copies = informer('host', environment, {
      resource: kind.host,
      series: `${kind.host.plural} (copies)`,
      labelSelector: marker,
      isMetadataOnly: true,
      transform: (object) => copyMetadataOf(withoutOwnedFields(object), slimMetadataOf),
      namespaces: hostNamespaces(config),
      indexes: {
        [BY_VIRTUAL_KEY]: (object: KubeObject) => {
          const virtual = namedVirtual(object, kind.host, names);
          return virtual === undefined ? [] : [keyOf(virtual)];
        },
      },
    });
    this.sides = {
      host: sideOf('host', environment, { resource: kind.host, cache: this.copies, inFlight }),
      virtual: sideOf('virtual', environment, { resource: kind.virtual, cache: this.virtualCache, inFlight }),
    };
    this.#forgetDeleted(this.virtualCache);
    if (!kind.isNamed || !kind.isImportable) return;
    this.sources = informer('host', environment, {
      resource: kind.host,
      series: `${kind.host.plural} (others)`,
      labelSelector: `${MANAGED_BY_LABEL}!=${names.vcluster}`,
      isMetadataOnly: true,
      transform: slimMetadataOf,
      namespaces: config.sync.namespaces.kind === 'mappings' ? hostNamespaces(config) : [names.hostNamespace],
    });
    this.#forgetDeleted(this.sources);
  }

  /** What is known by the uid of an object ends with it. */
  #forgetDeleted(cache: ObservableInformer): void {
    cache.subscribe(({ type, object: { metadata } }) => {
      if (type !== 'deleted') return;
      this.#refusals.delete(metadata.uid ?? '');
      this.#imports.delete(metadata.uid ?? '');
    });
  }

  get informers(): readonly ObservableInformer[] {
    return this.sources ? [this.virtualCache, this.copies, this.sources] : [this.virtualCache, this.copies];
  }

  get isSynced(): boolean {
    return this.informers.every((one) => one.isSynced);
  }

  /** Undefined once every first list is in its cache. */
  get whyUnlisted(): string | undefined {
    const unlisted = this.informers.find((one) => !one.isSynced);
    if (unlisted === undefined) return undefined;
    return `its objects cannot be listed: ${unlisted.condition.lastError ?? 'the API server does not respond'}`;
  }

  subscribe(handler: KindEvent): void {
    this.#handlers.push(handler);
    this.virtualCache.subscribe((event) => handler('virtual', event));
    for (const host of [this.copies, this.sources]) host?.subscribe((event) => handler('host', event));
  }

  virtual(key: ObjectKey): KubeObject | undefined {
    return this.virtualCache.get(key);
  }

  virtuals(): Iterable<KubeObject> {
    return this.virtualCache.list();
  }

  copiesOf(key: ObjectKey): readonly KubeObject[] {
    return [...this.copies.byIndex(BY_VIRTUAL_KEY, key)].flatMap((hostKey) => this.copies.get(hostKey) ?? []);
  }

  host(key: ObjectKey): KubeObject | undefined {
    return this.copies.get(key) ?? this.sources?.get(key);
  }

  malformed(key: ObjectKey): string | undefined {
    return this.#malformed.get(key);
  }

  /** References to them are decided again, with an Event. */
  #leftOut(items: readonly MalformedItem[], logger: Logger): void {
    const before = this.#malformed;
    this.#malformed = new Map(items.map(({ key, why }) => [key, why]));
    const fresh = items.filter(({ key, why }) => before.get(key) !== why);
    const [first] = fresh;
    if (first !== undefined)
      logger.warn({ kind: this.kind.id, ...first, count: items.length }, 'malformed objects are left out');
    const fixed = [...before.keys()].filter((key) => !this.#malformed.has(key));
    for (const key of [...fresh.map((item) => item.key), ...fixed])
      if (key !== undefined) this.#republish('virtual', key);
  }

  /** What is known of the object has changed, although it has not. */
  #republish(cluster: ClusterName, key: ObjectKey, metadata: ObjectMeta = { ...parseKey(key) }): void {
    const object = { metadata };
    const event: CacheEvent = { type: 'updated', key, object, previous: object };
    for (const handler of this.#handlers) handler(cluster, event);
  }

  refusal({ metadata: { uid = '' } }: KubeObject): string | undefined {
    return this.#refusals.get(uid)?.why;
  }

  /** The object was refused for its content, and has changed since. */
  isRefusalOutdated({ metadata: { uid = '', resourceVersion } }: KubeObject): boolean {
    const refusal = this.#refusals.get(uid);
    return refusal !== undefined && refusal.resourceVersion !== resourceVersion;
  }

  /** If the reason has changed, an event of the object is published: every virtual namespace may have references to it. */
  recordRefusal(object: KubeObject, why: string | undefined): void {
    const { uid = '', resourceVersion } = object.metadata;
    const hasChanged = this.#refusals.get(uid)?.why !== why;
    if (why === undefined) this.#refusals.delete(uid);
    else this.#refusals.set(uid, { why, resourceVersion });
    if (hasChanged) this.#republish('host', objectKey(object), object.metadata);
  }

  /** Without our label and annotation, the object belongs to another client. */
  isKnownImport({ metadata }: KubeObject): boolean {
    const { labels, annotations, uid = '' } = metadata;
    const hasMark =
      labels?.[MANAGED_BY_LABEL] === this.#vcluster || annotations?.[OBJECT_IMPORTED] === 'true';
    return hasMark && this.#imports.has(uid);
  }

  isKnownCopy(key: ObjectKey, { metadata: { uid } }: KubeObject): boolean {
    return uid !== undefined && this.#copies.get(key) === uid;
  }

  /** Outlasts the copy's place in the cache, which a client ends that removes the marker. */
  rememberCopy(key: ObjectKey, { metadata: { uid } }: KubeObject): void {
    this.#copies.set(key, uid);
  }

  forgetCopy(key: ObjectKey): void {
    this.#copies.delete(key);
  }

  rememberImport({ metadata: { uid = '' } }: KubeObject): void {
    this.#imports.add(uid);
  }

  forgetImport(uid: string): void {
    this.#imports.delete(uid);
  }
}

/** Whole objects are cached only if their content is copied from the cache. */
export function isWhole({ isSynced, isImportable }: ReferencedKind): boolean {
  return isSynced && isImportable;
}

function sideOf(
  cluster: ClusterName,
  environment: ReferenceEnvironment,
  { inFlight, ...place }: Pick<KindSide, 'resource' | 'cache'> & { readonly inFlight: Semaphore },
): KindSide {
  const side = { client: environment.clients[cluster], ...place };
  return { ...side, writer: createWriter({ ...environment, ...side, inFlight }) };
}

interface Scope {
  readonly resource: ReferencedKind['host'];
  /** Name in metrics, because a resource can have two caches. */
  readonly series: string;
  readonly labelSelector?: string;
  readonly isMetadataOnly?: boolean;
  readonly namespaces?: readonly string[] | undefined;
  readonly onMalformed?: (items: readonly MalformedItem[]) => void;
  readonly transform: (object: KubeObject) => KubeObject;
  readonly indexes?: Record<string, (object: KubeObject) => readonly string[]>;
}

function informer(
  cluster: ClusterName,
  environment: ReferenceEnvironment,
  { series, ...scope }: Scope,
): ObservableInformer {
  const { clients, servers, metrics } = environment;
  return new CachingInformer({
    ...environment,
    client: clients[cluster],
    server: servers[cluster],
    metrics: metrics.informer(cluster, series),
    ...scope,
  });
}

function withoutManagers(object: KubeObject): KubeObject {
  delete object.metadata.managedFields;
  return object;
}

function metadataOf(object: KubeObject): KubeObject {
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  return { metadata };
}

/** Keeps all metadata of our own copies, which the next write needs. */
function copyMetadataOf(object: KubeObject, slim: (object: KubeObject) => KubeObject): KubeObject {
  const isOurs = recordOf(object) !== undefined;
  if (!isOurs) return slim(object);
  return { metadata: { ...object.metadata } };
}

/** Keeps name, version and marks of ownership. Other annotations may hold the whole object (last-applied-configuration). `onlyLabelled` is the label
 * of `references.onlyLabelled`. */
function slimMetadata(onlyLabelled: string): (object: KubeObject) => KubeObject {
  const [importLabel = ''] = onlyLabelled.split('=');
  const isKeptLabel = (key: string, value: string): boolean =>
    [MANAGED_BY_LABEL, CONTROLLED_BY, importLabel].includes(key) ||
    isProgramLabel(key, value) ||
    isPrivateLabel(key, value);
  const isKeptAnnotation = (key: string): boolean =>
    isBookkeepingAnnotation(key) || key === SERVICE_ACCOUNT_NAME || key === CONTROLLED_BY;
  return (object) => {
    const { name, namespace, uid, resourceVersion, deletionTimestamp, labels, annotations } = object.metadata;
    const metadata: ObjectMeta = { name };
    if (namespace !== undefined) metadata.namespace = namespace;
    if (uid !== undefined) metadata.uid = uid;
    if (resourceVersion !== undefined) metadata.resourceVersion = resourceVersion;
    if (deletionTimestamp !== undefined) metadata.deletionTimestamp = deletionTimestamp;
    metadata.labels = kept(labels, isKeptLabel);
    metadata.annotations = kept(annotations, isKeptAnnotation);
    return { metadata };
  };
}

function kept(
  map: Record<string, string> | undefined,
  isKept: (key: string, value: string) => boolean,
): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key, value]) => isKept(key, value)));
}
