/** The objects that the syncer of one virtual cluster created, in both clusters, found by their bookkeeping. */

import type { JsonObject } from '../../base/json.ts';
import {
  keyOf,
  NAMESPACES,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { isForbidden } from '../../kube/status-error.ts';
import type { ClusterClient, ClusterName } from '../../kube/types.ts';
import type { Config } from '../config/config.ts';
import { SYNCABLE_KINDS, syncedKinds } from '../kinds/synced-kinds.ts';
import { isOptedOut } from '../reconcile/decide.ts';
import { isCopyFrom, unmappedVirtual } from '../reconcile/marked-copies.ts';
import { isImport } from '../references/import-forge.ts';
import { namedVirtual, VIRTUAL_NAMESPACE } from '../translate/bookkeeping.ts';
import { CONTROLLED_BY, MANAGED_BY_LABEL } from '../translate/labels.ts';
import { recordOf } from '../translate/last-synced.ts';
import { createTranslators } from '../translation.ts';
import { type Connection, reaching } from './connection.ts';
import { objectsOf, type Snapshot, type WorldPlan } from './snapshot.ts';

export interface CreatedObject {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The object on the other side that it is a copy of; undefined where it is no copy. */
  readonly of: NamespacedName | undefined;
  /** The configuration maps no namespace to its own. */
  readonly isUnmapped?: boolean;
  /** The virtual object, where it has the status of this copy, and the patch that clears it. */
  readonly status?: { readonly virtual: KubeObject; readonly patch: JsonObject };
}

/** Of those that are `kept`. */
export const WHY_KEPT = `${CONTROLLED_BY} assigns it to another controller`;

interface CreatedObjects {
  readonly deletable: readonly CreatedObject[];
  /** Created by this program, but `vcluster.loft.sh/controlled-by` assigns them to another controller. */
  readonly kept: readonly CreatedObject[];
  /** In namespaces that are not mapped: nothing but the name of the virtual cluster says whose they are. */
  readonly unproven: readonly CreatedObject[];
}

export function createdObjects(
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
      const status = copiedStatus(object, resource, () => virtualAt(resource, of));
      return [{ cluster: 'host', resource, object, of, isUnmapped: elsewhere !== undefined, ...status }];
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
export function unusedIn({ references, changes, snapshot }: WorldPlan): (one: CreatedObject) => boolean {
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

/** Host namespaces that `createNamespaces` made for a virtual cluster of this name. */
export async function createdNamespaces(
  host: ClusterClient,
  { name }: Config,
): Promise<readonly KubeObject[]> {
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
