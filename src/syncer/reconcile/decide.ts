/** Decides what to do with one key from the state in both caches. Pure: no clock, no requests, no state. */

import {
  KEEPING_REASONS,
  type GateOptions,
  type GateReason,
  type SyncedKind,
  type UnmappedNamespace,
} from '../kinds/kind.ts';
import {
  isTerminating,
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import type { Ownership } from '../translate/types.ts';
import { CONTROLLED_BY } from '../translate/labels.ts';
import { recordOf } from '../translate/last-synced.ts';

export const SKIP_BACKSYNC = 'vcluster.loft.sh/skip-backsync';
/** The name by which this syncer may appear in a `controlled-by` annotation without opting the object out. */
const SYNCER_NAME = 'endpoints';
/** The Endpoints of the API server itself. */
export const NEVER_SYNCED: ObjectKey = 'default/kubernetes';

/** vCluster deletes the virtual object of a copy that another client deletes, so such a copy is left to it. */
export const SYNCED_BY_VCLUSTER = 'synced by vCluster';

const FOREIGN_SERVICE = 'its host Service is not the copy of its Service';

export interface Observation {
  readonly key: ObjectKey;
  readonly virtual: KubeObject | undefined;
  /** The virtual Service that decides whether the object is synced; for Endpoints, the one of the same name. */
  readonly service: KubeObject | undefined;
  /** Namespace and name of the host copy; undefined: the virtual namespace is not mapped. */
  readonly target: NamespacedName | undefined;
  /** Another namespace that the object names and that is not mapped. */
  readonly unmapped: UnmappedNamespace | undefined;
  readonly host: KubeObject | undefined;
  /** Ownership of `host`; undefined exactly when `host` is. */
  readonly ownership: Ownership | undefined;
  /** Copies of this key at other places than `target`. */
  readonly strays: readonly KubeObject[];
  /** Every virtual object with the same `target`, this one included. */
  readonly claims: readonly Claim[];
  /** `host` gets traffic from a host Service that is not the copy of its virtual Service. */
  readonly hasForeignService: boolean;
  /** That one is the copy of another Service of the same virtual namespace: the object has moved, or its copy was moved. */
  readonly isMoved: boolean;
  /** The host has no Service that the copy belongs to, so its controllers may delete it when they start ({@link SyncedKind.isSparedWithMark}). */
  readonly isUnserved: boolean;
  readonly isKnownCopy: boolean;
  /** This process has synced the object, and not deleted its copy but to create it again. */
  readonly wasCopied: boolean;
}

export interface Claim {
  readonly key: ObjectKey;
  readonly createdAt: string;
  readonly isEligible: boolean;
  /** It gets no copy, but would keep the one that it has. */
  readonly keepsCopy: boolean;
  /** Its virtual Service exists, so its copy may replace what the host's endpoints controller created. */
  readonly hasService: boolean;
}

export type Decision =
  | { readonly kind: 'ignore'; readonly reason: IgnoreReason }
  | { readonly kind: 'refuse'; readonly reason: RefuseReason; readonly note: string }
  | { readonly kind: 'delete'; readonly reason: string }
  | { readonly kind: 'create' }
  | { readonly kind: 'update' }
  /** Replace the host object with a new translation, in one guarded PUT. */
  | { readonly kind: 'rewrite'; readonly reason: 'virtual object was re-created' }
  /** As `rewrite`, over an object of the host's endpoints controller, which writes it while the host Service, to be read first, has a selector. */
  | { readonly kind: 'takeOver' }
  /** The host object is being deleted, and its finalizers keep it there. Nothing is read back from it. */
  | { readonly kind: 'terminating'; readonly next: AfterTermination };

/** What follows its end, which causes an event. `recreate`: it is the copy, and what flows one way is written until then, because traffic still
 * follows it; `create`: it is another client's. */
export type AfterTermination = 'recreate' | 'create' | 'nothing';

export type IgnoreReason =
  | 'never synced'
  | 'controlled by another'
  | 'skip-backsync'
  | 'gone on both sides'
  | typeof SYNCED_BY_VCLUSTER
  | GateReason;
export type Refusal = Extract<Decision, { kind: 'refuse' }>;
export type RefuseReason = 'NotManaged' | 'NameConflict' | 'NamespaceNotMapped';

export interface DecideOptions extends GateOptions {
  readonly kind: SyncedKind;
  /** By its values, vCluster syncs the kind at the same time. */
  readonly isSyncedByVcluster: boolean;
}

/** `isForeign`: the host Service that its copy would get traffic from is not the copy of its Service. */
export function claimOf(
  virtual: KubeObject,
  service: KubeObject | undefined,
  options: DecideOptions & { readonly isForeign: boolean },
): Claim {
  const gate = options.kind.gate(virtual, service, options);
  const mayHave = !isOptedOut(virtual) && !options.isForeign;
  return {
    key: objectKey(virtual),
    createdAt: virtual.metadata.creationTimestamp ?? '',
    isEligible: mayHave && gate === undefined,
    keepsCopy: mayHave && gate !== undefined && KEEPING_REASONS.has(gate),
    hasService: service !== undefined,
  };
}

export function decide(seen: Observation, options: DecideOptions): Decision {
  const { kind } = options;
  if (seen.key === NEVER_SYNCED) return ignore('never synced');
  const ownsCopy = isCopyOf(seen);
  const isReleased = isOptedOut(seen.virtual) || (ownsCopy && isOptedOut(seen.host));
  // A label of the tenant cannot keep a copy there that this program wrote.
  const isGoing = seen.hasForeignService && !isKeptForVcluster(seen, options);
  if (ownsCopy && isGoing && (!isReleased || hasRecord(seen.host))) return deletion(seen, FOREIGN_SERVICE);
  if (isReleased) return ignore('controlled by another');
  if (seen.virtual === undefined) return withoutVirtual(seen, ownsCopy);
  const gate = kind.gate(seen.virtual, seen.service, options);
  const keepsCopy = ownsCopy || (seen.wasCopied && seen.host === undefined);
  if (gate !== undefined && !(keepsCopy && KEEPING_REASONS.has(gate)))
    return ownsCopy ? unneeded(seen, gate, options) : ignore(gate);
  if (seen.target === undefined) return refuseUnmapped(seen.virtual.metadata.namespace ?? '');
  if (seen.unmapped !== undefined) return refuseUnmapped(seen.unmapped.namespace, seen.unmapped.path);
  const rival = rivalOf(seen, kind);
  if (rival !== undefined) return refuseConflict(seen.target, rival);
  if (seen.host === undefined) return { kind: 'create' };
  if (isTerminating(seen.host)) return { kind: 'terminating', next: ownsCopy ? 'recreate' : 'create' };
  return overExisting(seen, seen.virtual, { target: seen.target, kind });
}

/** With the copy of an object that exists, vCluster deletes the object: only one that gets the traffic of another namespace goes. */
export function isKeptForVcluster(
  { hasForeignService, isMoved }: Pick<Observation, 'hasForeignService' | 'isMoved'>,
  { isSyncedByVcluster }: Pick<DecideOptions, 'isSyncedByVcluster'>,
): boolean {
  return isSyncedByVcluster && (!hasForeignService || isMoved);
}

/** The copy of an object that gets none. */
function unneeded(seen: Observation, gate: GateReason, options: DecideOptions): Decision {
  const decision = deletion(seen, gate);
  if (decision.kind !== 'delete') return decision;
  if (options.isSyncedByVcluster) return ignore(SYNCED_BY_VCLUSTER);
  return options.kind.leavesUnrecorded && !hasRecord(seen.host) ? ignore(gate) : decision;
}

/** Another copy takes the place of `actual`. Beside vCluster's own sync, what readers keep of a copy is the lesser evil: with the copy, vCluster
 * deletes the virtual object. */
export function isRecreated(
  { kind, isSyncedByVcluster }: DecideOptions,
  wanted: KubeObject,
  actual: KubeObject,
  virtual: KubeObject,
): boolean {
  const recreation = kind.recreationOf(wanted, actual, virtual);
  return recreation === 'always' || (recreation === 'forReaders' && !isSyncedByVcluster);
}

export function isOverOwnCopy(decision: Decision): boolean {
  if (decision.kind === 'terminating') return decision.next === 'recreate';
  return decision.kind === 'update' || decision.kind === 'rewrite';
}

function deletion({ host }: Observation, reason: string): Decision {
  const isUnderWay = host !== undefined && isTerminating(host);
  return isUnderWay ? { kind: 'terminating', next: 'nothing' } : { kind: 'delete', reason };
}

export function isOptedOut(object: KubeObject | undefined): boolean {
  const { labels, annotations } = object?.metadata ?? {};
  if (labels?.[CONTROLLED_BY]) return true;
  const annotation = annotations?.[CONTROLLED_BY];
  return Boolean(annotation) && annotation !== SYNCER_NAME;
}

function hasRecord(host: KubeObject | undefined): boolean {
  return host !== undefined && recordOf(host) !== undefined;
}

/** The host object is the copy of this key. */
export function isCopyOf({ ownership, key, isKnownCopy }: Observation): boolean {
  return isKnownCopy || (ownership?.kind === 'ours' && keyOf(ownership.virtual) === key);
}

function withoutVirtual(seen: Observation, ownsCopy: boolean): Decision {
  if (!ownsCopy) return ignore('gone on both sides');
  const { labels, annotations } = seen.host?.metadata ?? {};
  if (labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true')
    return ignore('skip-backsync');
  return deletion(seen, 'virtual object is gone');
}

function rivalOf(seen: Observation, kind: SyncedKind): Claim | undefined {
  const holder = seen.ownership?.kind === 'ours' ? keyOf(seen.ownership.virtual) : undefined;
  // Its copy is written, or refused after its patches and deleted: only then another object gets the name.
  if (holder === seen.key) return undefined;
  const isLeftBehind = isLeftByController(seen, kind);
  // An object that may not take the name over does not keep it from one that may.
  const eligible = seen.claims.filter(
    ({ key, isEligible, keepsCopy, hasService }) =>
      (isEligible || (keepsCopy && key === holder)) && (hasService || !isLeftBehind),
  );
  const holding = eligible.find((claim) => claim.key === holder);
  const winner = holding ?? eligible.toSorted(byAge)[0];
  return winner === undefined || winner.key === seen.key ? undefined : winner;
}

function byAge(a: Claim, b: Claim): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

function overExisting(
  seen: Observation,
  virtual: KubeObject,
  { target, kind }: { readonly target: NamespacedName; readonly kind: SyncedKind },
): Decision {
  if (isCopyOf(seen)) {
    const copiedUid = seen.ownership?.kind === 'ours' ? seen.ownership.uid : undefined;
    const isRecreated = copiedUid !== undefined && copiedUid !== (virtual.metadata.uid ?? '');
    return isRecreated ? { kind: 'rewrite', reason: 'virtual object was re-created' } : { kind: 'update' };
  }
  if (seen.ownership?.kind === 'ours') {
    return refuseConflict(target, { key: keyOf(seen.ownership.virtual) });
  }
  if (seen.service !== undefined && isLeftByController(seen, kind)) return { kind: 'takeOver' };
  return {
    kind: 'refuse',
    reason: 'NotManaged',
    note:
      `The host already has ${kind.resource.kind} "${keyOf(target)}" that this syncer did not create, so it is left untouched. ` +
      'Delete or rename it on the host, or rename this object; syncing resumes automatically.',
  };
}

/** The host's endpoints controller created the host object, and neither bookkeeping nor another syncer claims it. */
function isLeftByController({ ownership }: Observation, kind: SyncedKind): boolean {
  if (ownership?.kind !== 'unmarked' || isOptedOut(ownership.object)) return false;
  return kind.isMadeByController(ownership.object);
}

function refuseConflict(target: NamespacedName, rival: Pick<Claim, 'key'>): Decision {
  return {
    kind: 'refuse',
    reason: 'NameConflict',
    note:
      `The host name "${keyOf(target)}" already belongs to the copy of "${rival.key}" of this virtual cluster. ` +
      'Rename one of the two objects; syncing resumes automatically.',
  };
}

export function refuseForeignService(service: ObjectKey): Refusal {
  return {
    kind: 'refuse',
    reason: 'NotManaged',
    note:
      `The host Service "${service}" is not the copy of this object's Service, so this object is not copied to where it would get the ` +
      'traffic of others. Choose another name, or delete the Service on the host; syncing resumes automatically.',
  };
}

function refuseUnmapped(namespace: string, path?: string): Decision {
  const named = path === undefined ? '' : `, which ${path} names,`;
  return {
    kind: 'refuse',
    reason: 'NamespaceNotMapped',
    note:
      `Namespace "${namespace}"${named} has no entry in sync.toHost.namespaces.mappings.byName and mappingsOnly is set. ` +
      'Add a mapping for it, or switch mappingsOnly off.',
  };
}

function ignore(reason: IgnoreReason): Decision {
  return { kind: 'ignore', reason };
}
