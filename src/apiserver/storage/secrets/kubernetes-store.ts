/** Opens and verifies the store in Secrets of one namespace, which several replicas share. The etcd of the host cluster is the engine. */

import {
  ListWatch,
  type ListWatchCondition,
  type ListWatchMetrics,
} from '../../../kube/informer/list-watch.ts';
import { missingRights, type WantedRight } from '../../../kube/access-review.ts';
import { SECRETS, type KubeObject, orderedKey } from '../../../kube/object.ts';
import { isTransient } from '../../../kube/status-error.ts';
import { TerminalError, messageOf } from '../../../base/errors.ts';
import { retry, type BackoffLimits } from '../../../base/retry.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { Logger } from '../../../base/logger.ts';
import { OutageLog } from '../../../base/outage-log.ts';
import {
  future,
  type HistoryOptions,
  type ListPage,
  type ListResult,
  type Notes,
  type Projected,
  type Projection,
  type Store,
  type StoredEntry,
  type StoreKey,
  type StoreRange,
  type StoreVerdict,
  type StoreWatch,
  StoreError,
  type WatchObserver,
} from '../store.ts';
import { decodeSecret, OBJECT_TYPE, SecretDecoder, SecretNames } from './secret-codec.ts';
import { EventFeed } from '../event-feed.ts';
import {
  HostContact,
  HostSecrets,
  type HostSecretsOptions,
  type RetryBudget,
  unreadable,
} from './host-secrets.ts';
import { SecretCache, type ShownState } from './secret-cache.ts';
import { SecretObjects } from './secret-objects.ts';
import { NOTES_TYPE, readNotes, ShardedNotes } from './sharded-notes.ts';

/** Default history: 2048 events, 32 MiB. */
export interface KubernetesStoreOptions extends HistoryOptions, HostSecretsOptions {
  /** Distinguishes this store from others in the same namespace; any text. Replicas of one store use the same name. */
  readonly name: string;
  readonly logger: Logger;
  readonly metrics?: ListWatchMetrics;
  /** How long a deletion waits for its event, and a create without a response for the event that proves it; default 1 s. */
  readonly eventWaitMs?: number;
}

const HISTORY_LIMIT = 2048;
const HISTORY_BYTES_MAX = 32 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
const EVENT_WAIT_MS = 1000;
/** The events of other replicas usually arrive within this time. */
const CATCH_UP_MS = 2000;
/** While a replica waits to reconnect, it accepts keys that were revoked elsewhere, so the wait is short. */
const RECONNECT_MAX_MS = 2000;
const NO_METRICS: ListWatchMetrics = {
  expect: () => undefined,
  ended: () => undefined,
  received: () => undefined,
};

/**
 * Reads and writes are requests to the host, so that all replicas see each other's writes immediately; one list-watch serves all watches.
 * Methods reject with `StoreError` (`unavailable`: the host does not respond, a permission is missing, or the Secret of this object is
 * damaged; nothing has happened then), and with `StatusError` when it is unknown whether a write happened (504), when an object is larger
 * than a Secret (413), or when the host rejects a Secret (500).
 */
export class KubernetesStore implements Store {
  readonly #options: KubernetesStoreOptions;
  readonly #closing = new AbortController();
  readonly #names: SecretNames;
  readonly #secrets: HostSecrets;
  readonly #feed: EventFeed;
  readonly #cache: SecretCache;
  readonly #contact: HostContact;
  readonly #listWatch: ListWatch;
  readonly #objects: SecretObjects;
  readonly #notes = new Map<string, ShardedNotes>();
  #running: Promise<void> | undefined;

  constructor(options: KubernetesStoreOptions) {
    const { client, namespace, name, logger, clock, random } = options;
    this.#options = options;
    const { historyLimit: eventsMax = HISTORY_LIMIT, historyBytesMax: bytesMax = HISTORY_BYTES_MAX } =
      options;
    const names = new SecretNames(name);
    const decoder = new SecretDecoder(names, logger, namespace);
    const secrets = new HostSecrets(options, this.#closing.signal);
    const feed = new EventFeed({ eventsMax, bytesMax }, logger);
    const bookmarked = (): number => Number(listWatch.resourceVersion);
    const cache = new SecretCache({ decoder, feed, clock, bookmarked });
    const listWatch = new ListWatch({
      client,
      resource: SECRETS,
      namespace,
      labelSelector: names.objectSelector(),
      sink: cache,
      clock,
      random,
      logger,
      metrics: options.metrics ?? NO_METRICS,
      reconnectMaxMs: RECONNECT_MAX_MS,
    });
    this.#names = names;
    this.#secrets = secrets;
    this.#feed = feed;
    this.#cache = cache;
    this.#contact = new HostContact({ ask: () => this.revision(), clock, logger });
    this.#listWatch = listWatch;
    const { eventWaitMs = EVENT_WAIT_MS } = options;
    this.#objects = new SecretObjects({ names, secrets, cache, decoder, listWatch, random, eventWaitMs });
  }

  /** Starts the list-watch; resolves when watches can begin. Rejects with `StoreError` `closed` when `signal` aborts before. */
  async start(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#listWatch.run(this.#closing.signal);
    const close = (): void => void this[Symbol.asyncDispose]();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    try {
      while (!this.#cache.isSynced) {
        this.#secrets.checkOpen();
        await this.#cache.until(() => this.#cache.isSynced, TIMEOUT_MS);
      }
    } finally {
      signal.removeEventListener('abort', close);
    }
  }

  /** The state of the list-watch, for readiness. */
  get condition(): ListWatchCondition {
    return this.#listWatch.condition;
  }

  async revision(): Promise<number> {
    return await this.#objects.revision(this.#secrets.budget());
  }

  async get(key: StoreKey): Promise<StoredEntry | undefined> {
    const found = await this.#objects.lookUp(key, this.#secrets.budget());
    if (found.state === 'damaged') throw unreadable(key, found.why);
    if (found.state !== 'entry') return undefined;
    this.#seen(found.entry);
    return found.entry;
  }

  async list(range: StoreRange, page: ListPage = {}): Promise<ListResult> {
    const budget = this.#secrets.budget();
    if (page.atRevision !== undefined) await this.#checkHappened(page.atRevision, budget);
    return await this.#objects.list(range, page, budget);
  }

  async create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#committed(this.#objects.put(key, value, undefined, this.#secrets.budget()));
  }

  async update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#committed(this.#objects.put(key, value, expectedRevision, this.#secrets.budget()));
  }

  async delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#committed(
      this.#objects.delete(key, expectedRevision, this.#secrets.budget()),
      expectedRevision,
    );
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    await this.#checkHappened(afterRevision, this.#secrets.budget());
    this.#secrets.checkOpen();
    if (this.#listWatch.condition.isRewound) throw notReadAgain();
    const close = this.#feed.subscribe(range, afterRevision, observer);
    const reached = (): number => Math.max(afterRevision, this.#cache.reached);
    return {
      get revision() {
        return reached();
      },
      close,
    };
  }

  project(resource: string, projection: Projection): Projected {
    const contact = this.#contact;
    return {
      confirmed: () => this.#confirmed(),
      catchUp: () => this.#catchUp(resource),
      get unconfirmedMs() {
        return contact.silentMs;
      },
      close: this.#cache.projections.add(resource, projection, this.#cache.entries()),
    };
  }

  /** Checks only that the host responds: it decides about each Secret when it is written. */
  async checkWritable(): Promise<void> {
    await this.revision();
  }

  notes(table: string): Notes {
    let notes = this.#notes.get(table);
    if (notes === undefined) {
      notes = new ShardedNotes(table, this.#names, this.#secrets, this.#options.logger);
      this.#notes.set(table, notes);
    }
    return notes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#feed.endAll();
    this.#cache.wakeAll();
    await this.#running;
  }

  /**
   * INVARIANT: the projections show a write before its caller knows of it. A write that is being sent gets a newer revision than all that are known,
   * unless the host was restored. `removed`: the revision that a deletion removes.
   */
  async #committed(write: Promise<StoredEntry>, removed?: number): Promise<StoredEntry> {
    const known = Number(this.#listWatch.newestVersion);
    const entry = await write;
    const { key, revision } = entry;
    if (revision > known) this.#listWatch.observe(String(revision));
    else this.#listAgain();
    this.#show(
      removed === undefined ? { key, entry, revision } : { key, entry: undefined, revision, removed },
    );
    return entry;
  }

  /** A write that changes nothing is acknowledged after this read alone. */
  #seen(entry: StoredEntry): void {
    const { key, revision } = entry;
    const held = this.#cache.held(this.#names.object(key))?.entry;
    // The cache has received all events up to there, so another past has this state.
    if (revision <= this.#cache.reached && held !== undefined && held.revision < revision) this.#listAgain();
    this.#show({ key, entry, revision });
  }

  #show(state: ShownState): void {
    const { revision, key } = state;
    const secretName = this.#names.object(key);
    const isKnown = this.#cache.reached >= revision || this.#cache.projections.isShown(secretName, revision);
    // The revisions of a restored host tell nothing about what was known before.
    if (isKnown && !this.#listWatch.condition.isRewound) return;
    this.#cache.projections.show(secretName, { ...state, atMs: this.#options.clock.monotonicMs() });
  }

  #confirmed(): Promise<void> | undefined {
    const { isRewound } = this.#listWatch.condition;
    if (isRewound) return Promise.reject(notReadAgain());
    const held = (name: string): StoredEntry | undefined => this.#cache.held(name)?.entry;
    if (!this.#cache.projections.isUndone(this.#cache.reached, held)) return this.#contact.confirmed();
    this.#listAgain();
    return Promise.reject(notReadAgain());
  }

  #listAgain(): void {
    const isKnown = this.#listWatch.condition.isRewound;
    if (!isKnown)
      this.#options.logger.warn(
        {},
        'the host cluster of the store was restored from a backup; its objects are read again',
      );
    this.#listWatch.listAgain();
  }

  /** Bookmarks come about once a minute: if other writes on the host have raised its revision, only a list tells that no event is missing. */
  async #catchUp(resource: string): Promise<void> {
    const budget = this.#secrets.budget();
    const wanted = await this.#objects.revision(budget);
    const isReached = (): boolean => this.#cache.reached >= wanted;
    await this.#cache.until(isReached, CATCH_UP_MS);
    if (isReached()) return;
    const { entries, revision } = await this.#objects.list({ resource }, {}, budget);
    if (this.#listWatch.condition.isRewound) throw notReadAgain();
    const gone = this.#cache.projections.shown(resource, this.#cache.entries());
    for (const entry of entries) {
      const id = orderedKey(entry.key);
      const isNewer = entry.revision > (gone.get(id)?.revision ?? 0);
      gone.delete(id);
      if (isNewer) this.#show({ key: entry.key, entry, revision: entry.revision });
    }
    for (const { key, revision: removed } of gone.values())
      if (removed <= revision) this.#show({ key, entry: undefined, revision, removed });
  }

  async #checkHappened(revision: number, budget: RetryBudget): Promise<void> {
    if (revision <= Number(this.#listWatch.newestVersion)) return;
    if (revision <= (await this.#objects.revision(budget))) return;
    throw future(revision);
  }
}

function notReadAgain(): StoreError {
  return new StoreError('unavailable', 'the host cluster was restored and has not been read again');
}

// Opens the store after checking its permissions, so that a missing one is reported at the start.

const VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
const CONNECT_DELAYS: BackoffLimits = { baseMs: 500, maxMs: 15_000 };

/**
 * Resolves when the store can be used. Logs and retries while the host does not respond, until `signal` aborts; then it rejects with
 * `StoreError` `closed`. Rejects with a `TerminalError` that names every missing permission.
 */
export async function openKubernetesStore(
  options: KubernetesStoreOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<KubernetesStore> {
  await checkRights(options, signal);
  const store = new KubernetesStore(options);
  await store.start(signal);
  return store;
}

async function checkRights(options: KubernetesStoreOptions, signal: AbortSignal): Promise<void> {
  const { client, namespace } = options;
  const wanted = VERBS.map((verb): WantedRight => ({ verb, group: '', resource: 'secrets', namespace }));
  const missing = await untilAnswered(options, signal, () => missingRights(client, wanted, { signal }));
  if (missing.length === 0) return;
  const verbs = missing.map(({ verb }) => verb).join(', ');
  throw new TerminalError(
    `managementApi.store: the kubernetes driver stores objects as Secrets, and the user of the host cluster cannot ${verbs} ` +
      `secrets in namespace ${JSON.stringify(namespace)}. Grant these verbs by a Role in that namespace, ` +
      'which endpoint-syncer rbac prints, or choose another driver.',
  );
}

async function untilAnswered<T>(
  { clock, random, logger }: KubernetesStoreOptions,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  const outage = new OutageLog(logger, 'the host cluster of the store does not respond yet');
  try {
    return await retry(ask, {
      ...CONNECT_DELAYS,
      clock,
      random,
      signal,
      isRetryable: isTransient,
      onRetry(error, delayMs) {
        const message = messageOf(error);
        outage.failed({ error: message, delayMs: Math.round(delayMs) });
      },
    });
  } catch (error) {
    if (signal.aborted) throw new StoreError('closed', 'the store was closed before it was open');
    throw error;
  }
}

// Verifies the Secrets of a store: each is readable, has the right name and the right labels.

/** Of a page. A kube-apiserver may take a minute for a request; for a user of the API, that would be too long. */
const VERIFY_TIMEOUT_MS = 65_000;

export interface VerifySecretsOptions extends HostSecretsOptions {
  /** Of the store. */
  readonly name: string;
}

/** Read-only, so the API may run meanwhile. Rejects with `StoreError` when the host does not respond or denies access. */
export async function verifySecrets(options: VerifySecretsOptions): Promise<StoreVerdict> {
  const names = new SecretNames(options.name);
  const secrets = new HostSecrets(options, new AbortController().signal);
  const read = (type: string) =>
    secrets
      .budget()
      .read((request) => secrets.listOfType(type, { ...request, timeoutMs: VERIFY_TIMEOUT_MS }));
  // By type, which is immutable: the labels may be damaged.
  const objects = await read(OBJECT_TYPE);
  const notes = await read(NOTES_TYPE);
  const ours = (all: readonly KubeObject[]): KubeObject[] =>
    all.filter(({ metadata }) => names.mayBeOurs(metadata.name, metadata.labels ?? {}));
  const found = ours(objects.secrets);
  const problems = [
    ...found.flatMap((secret) => problemOf(secret, objectProblem(names, secret))),
    ...ours(notes.secrets).flatMap((secret) =>
      problemOf(
        secret,
        readNotes(secret) === undefined ? 'its notes cannot be read and are lost' : undefined,
      ),
    ),
  ];
  const sound = found.filter((secret) => objectProblem(names, secret) === undefined);
  return { problems, objects: sound.length, revision: objects.revision };
}

function objectProblem(names: SecretNames, secret: KubeObject): string | undefined {
  const decoded = decodeSecret(names, secret);
  switch (decoded.state) {
    case 'held':
      return undefined;
    case 'damaged':
      return decoded.why;
    case 'terminating':
      return 'it is being deleted but has a finalizer: remove the finalizer';
  }
}

function problemOf({ metadata }: KubeObject, problem: string | undefined): string[] {
  return problem === undefined ? [] : [`Secret ${metadata.name}: ${problem}`];
}
