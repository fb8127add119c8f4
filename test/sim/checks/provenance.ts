/** The creator of each object, and the writes that this program may therefore do: checked at every write. */

import { keyOf, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { FORWARD, PORT_OFFSET, TEAM } from '../daemon/sim-config.ts';
import { DAEMON_MANAGER } from '../daemon/sim-daemon.ts';
import { CONTROLLER_MANAGER, hasSelector, SERVICE_NAME } from '../world/host-controllers.ts';
import { SYNCED_PLURALS } from '../history/operations.ts';
import { HOST_NAMESPACE, hostKeyOf, MAPPED_NAMESPACE, VCLUSTER } from '../world/names.ts';
import { API_SERVER_MANAGER, type Change } from '../../../src/kube/memory-cluster.ts';
import { RESTORE_MANAGER, type SimCluster } from '../world/sim-cluster.ts';
import { serviceSpec, type ServiceSpec } from '../world/service-storage.ts';
import { VCLUSTER_MANAGER } from '../world/vcluster-syncer.ts';
import { Deleters } from './deleters.ts';
import { isMirrored, isOptedOut } from './naive-model.ts';
import { changedNodePort } from './service-model.ts';
import { FORBIDDEN } from '../world/contents.ts';

export interface Provenance {
  /** The program created the object, or took it over as it may. */
  isOurs(object: KubeObject): boolean;
  /** vCluster changed this annotation of the virtual object, or the name of a slice's Service, to its value. */
  isCopiedBack(virtual: KubeObject, key: string): boolean;
}

export interface ProvenanceOptions {
  /** A virtual object may be deleted once another client has deleted its copy. */
  readonly deletesVirtual: boolean;
  /** A daemon may take a deletion by another daemon, or by an earlier process, for one by another client. */
  readonly areOwnDeletionsUnknown: () => boolean;
  /** Of a namespace that ends and is created again meanwhile, a daemon sees nothing but deletions. */
  readonly isPaused: () => boolean;
  /** Without a copy, nothing is left that says what vCluster has copied back. */
  readonly areEchoesForgotten: () => boolean;
  readonly violation: (message: string) => void;
}

const SYNCED: readonly string[] = SYNCED_PLURALS;
const REFERENCED = ['secrets', 'configmaps'];
const NOT_OBJECTS = ['events', 'leases'];
/** Bookkeeping that never flows back; `release` is written under another key. */
const BOOKKEEPING = /^vcluster\.loft\.sh\/(object-|managed-|namespace|label-)|^endpoint-syncer\//;

const RECORD = 'endpoint-syncer/last-synced';
const MANAGED = 'vcluster.loft.sh/managed-annotations';

/** What no user writes. */
const GROWN = new RegExp(`^team-team-|^\\[\\[|-x-${VCLUSTER}-x-.*-x-${VCLUSTER}$`);

/** Watches both clusters, and reports every write of the program that it must not do. */
export function watchProvenance(
  { host, virtual }: Readonly<Record<'host' | 'virtual', SimCluster>>,
  { deletesVirtual, areOwnDeletionsUnknown, areEchoesForgotten, isPaused, violation }: ProvenanceOptions,
): Provenance {
  const owners = new Map<string, string>();
  /** The virtual object that the program wrote a copy for, by the copy's uid. */
  const copied = new Map<string, string>();
  const written = new Set<string>();
  const deletions = new CopyDeletions({ areOwnDeletionsUnknown, isPaused });
  const copiedBack = new CopiedBack();
  const lost = new LostValues();
  host.subscribe((change) => lost.note(change));
  host.subscribe((change) => copiedBack.noteCopy(change));
  virtual.subscribe((change) => copiedBack.note(change));
  /** What has grown from a value that counts as the user's since then. */
  const taken = new Set<string>();
  const isForgotten = (uid: string, key: string, { grown, isFirst }: GrownValue): boolean => {
    if (taken.has(idOf(uid, [key, grown]))) return true;
    const isUnknown = isFirst && (areEchoesForgotten() || copiedBack.isRecreated(uid));
    const isUnproven = isUnknown || copiedBack.isRestored(uid);
    const value = isUnproven ? copiedBack.valueIn(grown, uid, key) : undefined;
    if (value === undefined) return false;
    // Since then it counts as the user's, and the other syncer's copy of what it has grown to is undone.
    lost.add(key, value);
    taken.add(idOf(uid, [key, grown]));
    return true;
  };
  host.subscribe((change) => deletions.note(change, owners.get(change.object.metadata.uid ?? ''), host));
  const watch = (cluster: SimCluster): void => {
    cluster.subscribe((change) => {
      const { object, previous, manager, plural, isDeletion } = change;
      if (manager === RESTORE_MANAGER) return;
      const uid = object.metadata.uid ?? '';
      const owner = owners.get(uid) ?? '';
      const isTakenByController = manager === CONTROLLER_MANAGER && owner !== DAEMON_MANAGER;
      // A copy that vCluster created is this program's, too.
      const creator = manager === VCLUSTER_MANAGER ? DAEMON_MANAGER : manager;
      if (previous === undefined || isTakenByController) owners.set(uid, creator);
      if (cluster === host && isMirrored(object)) copied.delete(uid);
      if (manager !== DAEMON_MANAGER || NOT_OBJECTS.includes(plural)) return;
      const verb = isDeletion ? 'delete' : previous === undefined ? 'create' : 'update';
      const what = `${verb} of ${cluster.name} ${plural} ${objectKey(object)}`;
      const problem = SYNCED.includes(plural)
        ? cluster === host
          ? onCopy(change, { owner, copied, written, virtual, isForgotten })
          : onOriginal(change, lost, deletesVirtual ? deletions : undefined)
        : onReferenced(change, owner);
      if (problem !== undefined) violation(`${what}: ${problem}`);
      if (cluster === host || REFERENCED.includes(plural)) owners.set(uid, DAEMON_MANAGER);
    });
  };
  watch(host);
  watch(virtual);
  return {
    isOurs: ({ metadata: { uid = '' } }) => owners.get(uid) === DAEMON_MANAGER,
    isCopiedBack: (original, key) => copiedBack.has(original, key),
  };
}

/** The annotations of virtual objects that vCluster has changed, and the names of the Services of slices. */
class CopiedBack {
  /** By the uid of the object: the annotations and the values that it wrote. */
  readonly #values = new Map<string, Record<string, string>>();
  /** Those that were changed since: the program remembers what it synced last. */
  readonly #overtaken = new Set<string>();
  readonly #records = new Set<string>();
  /** Objects that a user has created with all that vCluster had copied back to an earlier one: of that, nothing is known any more. */
  readonly #recreated = new Set<string>();
  /** Objects of a backup that holds what vCluster had copied back, or whose copies are of one: the record of the copy says nothing of it. */
  readonly #restored = new Set<string>();

  note({ object, previous, manager, isDeletion }: Change): void {
    const { uid = '' } = object.metadata;
    const annotations = textsOf(object);
    const isOld = Object.entries(annotations).some((entry) => this.#overtaken.has(idOf(uid, entry)));
    if (manager === RESTORE_MANAGER && (isOld || this.#wasCopiedBack(annotations[RECORD]))) {
      this.#restored.add(uid);
      this.#values.set(uid, annotations);
    }
    if (previous === undefined && this.#wasCopiedBack(annotations[RECORD])) {
      this.#recreated.add(uid);
      this.#values.set(uid, annotations);
    }
    const before = previous === undefined ? {} : textsOf(previous);
    if (manager !== RESTORE_MANAGER)
      for (const [key, value] of Object.entries(this.#values.get(uid) ?? {}))
        if (before[key] === value && annotations[key] !== value) this.#overtaken.add(idOf(uid, [key, value]));
    if (manager !== VCLUSTER_MANAGER || isDeletion || previous === undefined) return;
    const changed = Object.entries(annotations).filter(([key, value]) => value !== before[key]);
    if (annotations[RECORD] !== undefined) this.#records.add(annotations[RECORD]);
    this.#values.set(uid, { ...this.#values.get(uid), ...Object.fromEntries(changed) });
  }

  /** A restored copy has no record of what came back from it later. */
  noteCopy({ object, manager }: Change): void {
    const uid = object.metadata.annotations?.['vcluster.loft.sh/object-uid'];
    if (manager === RESTORE_MANAGER && uid !== undefined && this.#values.has(uid)) this.#restored.add(uid);
  }

  #wasCopiedBack(record: string | undefined): boolean {
    return record !== undefined && this.#records.has(record);
  }

  has(object: KubeObject, key: string): boolean {
    const value = textsOf(object)[key];
    return value !== undefined && this.#values.get(object.metadata.uid ?? '')?.[key] === value;
  }

  isRecreated(uid: string): boolean {
    return this.#recreated.has(uid);
  }

  isRestored(uid: string): boolean {
    return this.#restored.has(uid);
  }

  /** What vCluster wrote, if `grown` has grown from it; the object itself may be gone. */
  valueIn(grown: string, uid: string, key: string): string | undefined {
    const value = this.#values.get(uid)?.[key];
    return value !== undefined && grown.includes(value) ? value : undefined;
  }
}

function textsOf({ metadata: { annotations, labels } }: KubeObject): Record<string, string> {
  const service = labels?.[SERVICE_NAME];
  return { ...annotations, ...(service !== undefined && { [SERVICE_NAME]: service }) };
}

function idOf(uid: string, [key, value]: readonly [key: string, value: string]): string {
  return `${uid} ${key} ${value}`;
}

/** Values that count as a user's, because nothing says any more whose they are: the host's admission strips the record, and a client damages the list;
 * or another syncer has copied them back, and nothing remembers it. */
class LostValues {
  readonly #values = new Set<string>();

  note({ object, previous, manager }: Change): void {
    if (manager === DAEMON_MANAGER) return;
    const { annotations = {} } = object.metadata;
    for (const [key, value] of Object.entries(annotations))
      if (isNamed(previous, key) && !isNamed(object, key)) this.add(key, value);
  }

  add(key: string, value: string): void {
    this.#values.add(`${key} ${value}`);
  }

  has(key: string, value: string): boolean {
    return this.#values.has(`${key} ${value}`);
  }
}

/** The bookkeeping of the copy says that this annotation is synced. */
function isNamed(copy: KubeObject | undefined, key: string): boolean {
  const { [RECORD]: record, [MANAGED]: list } = copy?.metadata.annotations ?? {};
  return record !== undefined || list?.split('\n').includes(key) === true;
}

/** The virtual objects whose copies other clients have deleted, or may seem to have. */
class CopyDeletions {
  readonly #options: Pick<ProvenanceOptions, 'areOwnDeletionsUnknown' | 'isPaused'>;
  readonly #uids = new Set<string>();
  readonly #deleters = new Deleters();
  /** Those whose copies the program or a controller deleted, or which had no Service. */
  readonly #own = new Set<string>();
  /** The uids of the virtual objects that the program wrote a copy for, by the copy's uid: other clients may have damaged the annotation, and
   * without a Lease one daemon may still write for an object that was created again. */
  readonly #originals = new Map<string, Set<string>>();
  #ownServiceDeletion = '';

  constructor(options: Pick<ProvenanceOptions, 'areOwnDeletionsUnknown' | 'isPaused'>) {
    this.#options = options;
  }

  note(change: Change, owner: string | undefined, host: SimCluster): void {
    const { object, plural, manager, isDeletion } = change;
    if (manager === RESTORE_MANAGER) return;
    const deleter = this.#deleters.note(change);
    const key = objectKey(object);
    const isByService = manager === API_SERVER_MANAGER && this.#ownServiceDeletion === key;
    // What the API server deletes along with a Service follows immediately.
    this.#ownServiceDeletion = isDeletion && plural === 'services' && manager === DAEMON_MANAGER ? key : '';
    const { uid = '', annotations } = object.metadata;
    const originals = this.#originals.get(uid) ?? new Set();
    this.#originals.set(uid, originals);
    if (manager === DAEMON_MANAGER) originals.add(annotations?.['vcluster.loft.sh/object-uid'] ?? '');
    if (!isDeletion || owner !== DAEMON_MANAGER) return;
    const isByProgram = deleter === DAEMON_MANAGER || deleter === CONTROLLER_MANAGER;
    const isOwn = isByProgram || isByService || !hasService(change, host);
    const isUnseen = this.#options.isPaused() && !host.hasNamespace(object.metadata.namespace ?? '');
    const deletions = isOwn && !isUnseen ? this.#own : this.#uids;
    for (const original of originals) deletions.add(`${plural} ${original}`);
  }

  has(plural: string, { metadata: { uid } }: KubeObject): boolean {
    const id = `${plural} ${uid}`;
    return this.#uids.has(id) || (this.#own.has(id) && this.#options.areOwnDeletionsUnknown());
  }
}

/** The host Service that the object gets traffic from exists and has no selector; a Service needs none. */
export function hasService(change: Change, host: SimCluster): boolean {
  if (change.plural === 'services') return true;
  const service = host.get('services', hostServiceKey(change));
  return service !== undefined && !hasSelector(service) && service.metadata.deletionTimestamp === undefined;
}

export function hostServiceKey({ object: { metadata }, plural }: Change): string {
  const { namespace = '', name, labels = {} } = metadata;
  return keyOf({ namespace, name: plural === 'endpointslices' ? (labels[SERVICE_NAME] ?? '') : name });
}

interface CopyContext {
  readonly owner: string;
  readonly copied: Map<string, string>;
  /** The uids of a copy and of the object that the program wrote it for. Of a copy that vCluster or an earlier object has left, it knows nothing. */
  readonly written: Set<string>;
  readonly virtual: SimCluster;
  readonly isForgotten: (uid: string, key: string, value: GrownValue) => boolean;
}

interface GrownValue {
  readonly grown: string;
  /** The program has not written this copy for this object before. */
  readonly isFirst: boolean;
}

function onCopy(change: Change, context: CopyContext): string | undefined {
  const { owner, copied, virtual } = context;
  const { object, previous, isDeletion } = change;
  const { uid = '', annotations = {} } = object.metadata;
  if (previous !== undefined && owner !== DAEMON_MANAGER) {
    const problem = foreignWrite(change, owner, virtual);
    if (problem !== undefined) return problem;
  }
  if (!isDeleted(change) && isOptedOut(previous)) return 'it has opted out';
  const grown = grownValue(change, context);
  context.written.add(`${uid} ${annotations['vcluster.loft.sh/object-uid'] ?? ''}`);
  if (grown !== undefined) return grown;
  const nodePort = previous && object.kind === 'Service' ? changedNodePort(object, previous) : undefined;
  if (nodePort !== undefined) return nodePort;
  // With a finalizer, a deletion only marks the object.
  if (isDeletion || object.metadata.deletionTimestamp !== undefined) return undefined;
  const { namespace, name } = stated(annotations);
  const key = keyOf({ namespace, name });
  const before = copied.get(uid);
  copied.set(uid, key);
  if (before !== undefined && before !== key) return `it is the copy of ${before} and becomes that of ${key}`;
  return misplaced(object, { namespace, name });
}

function stated(annotations: Readonly<Record<string, string>>) {
  return {
    namespace: annotations['vcluster.loft.sh/object-namespace'] ?? '',
    name: annotations['vcluster.loft.sh/object-name'] ?? '',
  };
}

/** A copy names the virtual object whose place it is at, under one of the configurations, or stands in there. */
function misplaced(
  object: KubeObject,
  virtual: { readonly namespace: string; readonly name: string },
): string | undefined {
  if (![HOST_NAMESPACE, MAPPED_NAMESPACE].includes(object.metadata.namespace ?? ''))
    return 'it is in a foreign namespace';
  const isInPlace = [true, false].some((isMapped) => {
    const place = hostKeyOf(virtual, { isMapped, naming: 'short' });
    const isStandIn = object.kind === 'EndpointSlice' && `${place}-stand-in` === objectKey(object);
    return isStandIn || place === objectKey(object);
  });
  return isInPlace ? undefined : `it names ${keyOf(virtual)}`;
}

/** An object of another client, unless the host's endpoints controller created it for a Service that has lost its selector. */
function foreignWrite(
  { object, isDeletion, plural }: Change,
  owner: string,
  virtual: SimCluster,
): string | undefined {
  if (owner !== CONTROLLER_MANAGER || isDeletion || plural !== 'endpoints') return `it belongs to ${owner}`;
  const service = virtual.get('services', keyOf(stated(object.metadata.annotations ?? {})));
  if (service === undefined) return 'it is taken over although its virtual Service does not exist';
  return hasSelector(service) ? 'it is taken over although its virtual Service has a selector' : undefined;
}

/** With a finalizer, a deletion only marks the object. */
function isDeleted({
  object,
  previous,
  isDeletion,
}: Pick<Change, 'object' | 'previous' | 'isDeletion'>): boolean {
  return isDeletion || object.metadata.deletionTimestamp !== previous?.metadata.deletionTimestamp;
}

/** The virtual object is the user's: its labels, annotations and contents may follow the host, without anything of the host's own. */
function onOriginal(
  { object, previous, isDeletion, plural }: Change,
  lost: LostValues,
  deletions: CopyDeletions | undefined,
): string | undefined {
  if (isDeleted({ object, previous, isDeletion })) {
    if (deletions === undefined) return 'the virtual side is never deleted';
    return deletions.has(plural, object) ? undefined : 'no other client has deleted its copy';
  }
  if (previous === undefined) return 'the virtual side is never created';
  if (isOptedOut(previous)) return 'it has opted out';
  const { annotations = {}, labels = {} } = object.metadata;
  const before = { ...previous.metadata.annotations, ...previous.metadata.labels };
  // Another syncer may have carried it over already.
  const isLeak = (key: string, prefix: string): boolean => {
    const { [key]: value = '' } = annotations;
    return value.startsWith(prefix) && value !== before[key] && !lost.has(key, value);
  };
  if (isLeak(TEAM, 'team-')) return `a translated value leaks: ${annotations[TEAM]}`;
  if (isLeak(FORWARD, '[')) return `a translated value leaks: ${annotations[FORWARD]}`;
  if (/-x"/.test(JSON.stringify([object['subsets'], object['endpoints']])))
    return 'a translated host name of an address leaks';
  if (object.kind === 'Service' && isPatchedSpec(serviceSpec(object))) return 'a patched spec leaks';
  const leaked = Object.keys({ ...annotations, ...labels }).find(
    (key) => BOOKKEEPING.test(key) && before[key] === undefined,
  );
  return leaked === undefined ? undefined : `bookkeeping leaks: ${leaked}`;
}

function isPatchedSpec({ externalName, ports = [] }: ServiceSpec): boolean {
  return externalName?.startsWith('host.') === true || ports.some(({ port }) => port > PORT_OFFSET);
}

/** A value that the patches or the translation of names have changed twice. */
function grownValue({ object, previous }: Change, { isForgotten, written }: CopyContext): string | undefined {
  const { annotations = {}, labels = {} } = object.metadata;
  const before = { ...previous?.metadata.annotations, ...previous?.metadata.labels };
  const uid = annotations['vcluster.loft.sh/object-uid'] ?? '';
  const isFirst = !written.has(`${object.metadata.uid} ${uid}`);
  const grown = Object.entries({ ...annotations, ...labels }).find(
    ([key, value]) =>
      GROWN.test(value) && value !== before[key] && !isForgotten(uid, key, { grown: value, isFirst }),
  );
  return grown === undefined ? undefined : `a value grows: ${grown.join(' = ')}`;
}

function onReferenced({ object, previous, isDeletion }: Change, owner: string): string | undefined {
  if (previous !== undefined && owner !== DAEMON_MANAGER) return `it belongs to ${owner}`;
  if (isDeletion) return undefined;
  return JSON.stringify(object).includes(FORBIDDEN) ? 'it carries what must never be copied' : undefined;
}
