/** The objects that the syncer of one virtual cluster created, in both clusters, found by their bookkeeping, and their deletion. */

import type { JsonObject } from '../../base/json.ts';
import { LEASES } from '../../kube/lease.ts';
import {
  isOfKindNamed,
  keyOf,
  NAMESPACES,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { isConflict, isForbidden, isNotFound } from '../../kube/status-error.ts';
import { describeTermination } from '../../kube/termination.ts';
import type { ClusterClient, ClusterName } from '../../kube/types.ts';
import type { Config } from '../config/config.ts';
import { SYNCABLE_KINDS, syncedKinds, type SyncedKey } from '../kinds/synced-kinds.ts';
import { isOptedOut } from '../reconcile/decide.ts';
import { isCopyFrom, unmappedVirtual } from '../reconcile/marked-copies.ts';
import { isImport } from '../references/import-forge.ts';
import { FIELD_MANAGER, namedVirtual, VIRTUAL_NAMESPACE } from '../translate/bookkeeping.ts';
import { CONTROLLED_BY, MANAGED_BY_LABEL } from '../translate/labels.ts';
import { recordOf } from '../translate/last-synced.ts';
import { createTranslators } from '../translation.ts';
import { type Connection, listAll, reaching } from './connection.ts';
import { unknownKind, wantedKind } from './kind-names.ts';
import {
  objectsOf,
  rehearseSnapshot,
  takeSnapshot,
  type CommandParts,
  type Snapshot,
  type WorldPlan,
} from './snapshot.ts';

export interface CreatedObject {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The object on the other side that it is a copy of; undefined where it is no copy. */
  readonly of: NamespacedName | undefined;
  /** Of a host copy: the key below `sync.toHost` that syncs its kind. */
  readonly key?: SyncedKey | undefined;
  /** The configuration maps no namespace to its own. */
  readonly isUnmapped?: boolean;
  /** The virtual object, where it has the status of this copy, and the patch that clears it. */
  readonly status?: { readonly virtual: KubeObject; readonly patch: JsonObject };
}

interface CreatedObjects {
  readonly deletable: readonly CreatedObject[];
  /** Created by this program, but `vcluster.loft.sh/controlled-by` assigns them to another controller. */
  readonly kept: readonly CreatedObject[];
  /** In namespaces that are not mapped: nothing but the name of the virtual cluster says whose they are. */
  readonly unproven: readonly CreatedObject[];
}

interface CleanupPlan {
  /** To be deleted one after the other. */
  readonly groups: readonly (readonly CreatedObject[])[];
  readonly left: readonly { readonly one: CreatedObject; readonly why: string }[];
  /** What is wrong with a kind of which nothing was created: most likely a typo. */
  readonly kindProblem: string | undefined;
  /** Kinds whose copies may remain, with the reason. */
  readonly unreadable: readonly string[];
  /** Why the copies of objects that are gone are no part of what is unused. */
  readonly objection: string | undefined;
  /** Host namespaces that `createNamespaces` made for a virtual cluster of this name; only where all is deleted. */
  readonly namespaces: readonly KubeObject[];
  /** The Lease, by which `--vcluster` finds the configuration, where all else is deleted. */
  readonly keptLease: KubeObject | undefined;
}

export interface CleanupChoice {
  /** Only what the configuration does not keep. */
  readonly isUnused: boolean;
  /** As a user writes it; undefined: of any kind. */
  readonly kind: string | undefined;
  /** Of the daemon. */
  readonly lease: KubeObject | undefined;
}

export async function planCleanup(
  connection: Connection,
  { isUnused, kind, lease }: CleanupChoice,
  parts: CommandParts,
): Promise<CleanupPlan> {
  const { isHosted = false } = connection;
  const isWhole = !isUnused && kind === undefined;
  const wanted = wantedKind(kind);
  const snapshot = await takeSnapshot(connection, { ...parts, isOwnerNeeded: false, everyKind: true });
  const { deletable, kept, unproven } = createdObjects(snapshot, connection);
  const plan = isUnused ? await rehearseSnapshot(snapshot, parts) : undefined;
  const isUnkept = plan === undefined ? () => true : unusedIn(plan);
  const isChosen = (one: CreatedObject): boolean => isUnkept(one) && isOfKindNamed(one.resource, wanted);
  const left = (all: readonly CreatedObject[], why: string): CleanupPlan['left'] =>
    all.filter(isChosen).map((one) => ({ one, why }));
  const isCreated = [...deletable, ...kept].some(({ resource }) => isOfKindNamed(resource, wanted));
  return {
    // While copies exist, the Lease names the syncer that created them.
    groups: [deletable.filter(isChosen), isWhole && !isHosted ? leaseOf(lease) : []],
    left: [...left(unproven, WHY_UNPROVEN), ...left(kept, WHY_KEPT)],
    kindProblem: wanted?.scope === 'unknown' && !isCreated ? unknownKind(wanted) : undefined,
    unreadable: snapshot.unreadable,
    objection: plan?.objection,
    namespaces: isWhole ? await createdNamespaces(connection.clusters.host, snapshot.config) : [],
    keptLease: isWhole && isHosted ? lease : undefined,
  };
}

function leaseOf(object: KubeObject | undefined): CreatedObject[] {
  return object === undefined ? [] : [{ cluster: 'host', resource: LEASES, object, of: undefined }];
}

const WHY_UNPROVEN =
  'its namespace is not mapped, and the virtual cluster does not have the object that it names; it may be the copy of another virtual cluster of this name: delete it with kubectl if it is not';
const WHY_KEPT = `${CONTROLLED_BY} assigns it to another controller`;

function createdObjects(
  { config, kinds, referenced }: Snapshot,
  { isHosted = false }: Pick<Connection, 'isHosted'>,
): CreatedObjects {
  const { names } = createTranslators(config);
  const virtualAt = (resource: Resource, key: NamespacedName): KubeObject | undefined => {
    const imported = referenced.find(({ kind }) => kind.host.plural === resource.plural);
    const { virtual } = imported ?? objectsOf({ kinds }, resource);
    return virtual.find((object) => objectKey(object) === keyOf(key));
  };
  const copies = (resource: Resource, host: readonly KubeObject[]): CreatedObject[] =>
    host.flatMap((object) => {
      // vCluster's own copies have the same bookkeeping but no record of this program.
      if (recordOf(object) === undefined) return [];
      const elsewhere = isHosted ? undefined : unmappedVirtual(object, resource, names);
      const of = elsewhere ?? namedVirtual(object, resource, names);
      if (of === undefined) return [];
      const key = SYNCABLE_KINDS.find((kind) => kind.resource.plural === resource.plural)?.key;
      const status = copiedStatus(object, resource, () => virtualAt(resource, of));
      const isUnmapped = elsewhere !== undefined;
      return [{ cluster: 'host', resource, object, of, key, isUnmapped, ...status }];
    });
  const imports = referenced.flatMap(({ kind, virtual }) =>
    virtual.flatMap((object): CreatedObject[] => {
      const of = { namespace: config.host.namespace, name: object.metadata.name };
      const isOurs = isImport(object, config.name);
      return isOurs ? [{ cluster: 'virtual', resource: kind.virtual, object, of }] : [];
    }),
  );
  const all = [
    ...kinds.flatMap(({ resource, host }) => copies(resource, host)),
    ...referenced.flatMap(({ kind, host }) => copies(kind.host, host)),
    ...imports,
  ];
  const isProven = ({ resource, object, of, isUnmapped = false }: CreatedObject): boolean =>
    !isUnmapped || (of !== undefined && isCopyFrom(object, virtualAt(resource, of)));
  const groupOf = (one: CreatedObject): keyof CreatedObjects =>
    isOptedOut(one.object) ? 'kept' : isProven(one) ? 'deletable' : 'unproven';
  return { deletable: [], kept: [], unproven: [], ...Object.groupBy(all, groupOf) };
}

/** What a daemon with this configuration neither writes nor deletes itself, and imports that it would delete. */
function unusedIn({ references, changes, snapshot }: WorldPlan): (one: CreatedObject) => boolean {
  const synced = new Set(syncedKinds(snapshot.config).map(({ kind }) => kind.resource.plural));
  const imported = new Set(
    references.flatMap(({ seen, isReferenced }) => (isReferenced ? [seen.kind.host.plural] : [])),
  );
  const deleted = changes.filter(
    ({ resource, after }) => after === undefined && !synced.has(resource.plural),
  );
  const unreferenced = new Set(deleted.map(({ before }) => before?.metadata.uid));
  return ({ resource: { plural }, object, isUnmapped = false }) => {
    if (isUnmapped || unreferenced.has(object.metadata.uid)) return true;
    const isSyncable = SYNCABLE_KINDS.some(({ resource }) => resource.plural === plural);
    return isSyncable && !synced.has(plural) && !imported.has(plural);
  };
}

async function createdNamespaces(host: ClusterClient, { name }: Config): Promise<readonly KubeObject[]> {
  const labelSelector = `${MANAGED_BY_LABEL}=${name}`;
  // The right to list namespaces is optional.
  const { items } = await reaching('host', () =>
    host.list(NAMESPACES, { labelSelector }).catch((error: unknown) => {
      if (isForbidden(error)) return { items: [] };
      throw error;
    }),
  );
  return items.filter(({ metadata }) => metadata.annotations?.[VIRTUAL_NAMESPACE] !== undefined);
}

/** Undefined where the virtual object has another status, or none. */
function copiedStatus(
  copy: KubeObject,
  { plural }: Resource,
  readVirtual: () => KubeObject | undefined,
): Pick<CreatedObject, 'status'> {
  const patchOf = SYNCABLE_KINDS.find(({ resource }) => resource.plural === plural)?.statusPatch;
  const virtual = patchOf && readVirtual();
  if (virtual === undefined || patchOf === undefined || patchOf(virtual, copy) !== undefined) return {};
  const patch = patchOf(virtual, undefined);
  return patch === undefined ? {} : { status: { virtual, patch } };
}

// Deletion.

/** What became of one object, in the order in which it happened. `cleared`: the virtual object has lost the status of a deleted copy. */
export type CleanupStep =
  | { readonly kind: 'cleared' | 'deleted'; readonly one: CreatedObject }
  | { readonly kind: 'left'; readonly one: CreatedObject; readonly why: string };

/** One group after the other, each with the same number of concurrent requests as the daemon. */
export async function deleteCreated(
  groups: readonly (readonly CreatedObject[])[],
  connection: Connection,
  {
    report,
    showProgress,
  }: { readonly report: (step: CleanupStep) => void } & Pick<CommandParts, 'showProgress'>,
): Promise<void> {
  const { workers } = connection.config;
  const count = groups.flat().length;
  using progress = showProgress('deleting');
  let done = 0;
  const work = async (todo: Iterable<CreatedObject>, deleted: CreatedObject[]): Promise<void> => {
    for (const one of todo) {
      if (await isDeleted(one, connection)) {
        deleted.push(one);
        if (await isStatusCleared(one, connection)) report({ kind: 'cleared', one });
      } else report({ kind: 'left', one, why: 'another client has replaced it' });
      progress.update(++done, count);
    }
  };
  for (const group of groups) {
    const todo = group.values();
    const deleted: CreatedObject[] = [];
    await Promise.all(Array.from({ length: workers }, () => work(todo, deleted)));
    // A Lease has no finalizer, and the right to list Leases is not needed otherwise.
    const copies = deleted.filter(({ of }) => of !== undefined);
    const terminating = await terminatingOf(copies, connection);
    for (const one of deleted) {
      const there = terminating.get(one.object.metadata.uid);
      if (there === undefined) report({ kind: 'deleted', one });
      else report({ kind: 'left', one, why: `it ${describeTermination(there)}` });
    }
  }
}

/** Those that finalizers keep there, by uid. A list for each kind and namespace, because nearly all objects are gone. */
async function terminatingOf(
  deleted: readonly CreatedObject[],
  { clusters }: Connection,
): Promise<ReadonlyMap<string | undefined, KubeObject>> {
  const uids = new Set(deleted.map(({ object }) => object.metadata.uid));
  const places = new Map(
    deleted.map((one) => [JSON.stringify([one.cluster, one.resource, one.object.metadata.namespace]), one]),
  );
  const terminating = new Map<string | undefined, KubeObject>();
  for (const { cluster, resource, object } of places.values())
    for (const there of await listAll(clusters[cluster], resource, [object.metadata.namespace ?? '']))
      if (uids.has(there.metadata.uid)) terminating.set(there.metadata.uid, there);
  return terminating;
}

/** Clears a status that came from the deleted copy. False: there is none, or the virtual object has changed in the meantime, and keeps its status. */
async function isStatusCleared(
  { resource, status }: CreatedObject,
  { clusters }: Connection,
): Promise<boolean> {
  if (status === undefined) return false;
  const { namespace = '', name, resourceVersion = null } = status.virtual.metadata;
  const body = { ...status.patch, metadata: { resourceVersion } };
  const options = { subresource: 'status', fieldManager: FIELD_MANAGER } as const;
  return reaching('virtual', async () => {
    try {
      await clusters.virtual.patch(resource, { namespace, name }, { type: 'merge', body }, options);
      return true;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return false;
      throw error;
    }
  });
}

/** Deletes only the object with the uid that was read. True if it no longer exists, false if another object has its name. */
function isDeleted({ cluster, resource, object }: CreatedObject, { clusters }: Connection): Promise<boolean> {
  const { namespace = '', name, uid = '' } = object.metadata;
  return reaching(cluster, async () => {
    try {
      await clusters[cluster].delete(resource, { namespace, name }, { uid });
      return true;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return isNotFound(error);
      throw error;
    }
  });
}
