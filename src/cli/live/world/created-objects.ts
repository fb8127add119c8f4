/** The objects that the syncer of one virtual cluster created, in both clusters, found by their bookkeeping. Pure. */

import {
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../../kube/object.ts';
import type { JsonObject } from '../../../base/json.ts';
import { STATUS_PATCHES } from '../../../syncer/kinds/synced-kinds.ts';
import type { ClusterName } from '../../../kube/types.ts';
import { isOptedOut } from '../../../syncer/reconcile/decide/decide.ts';
import { isImport } from '../../../syncer/references/import/import-forge.ts';
import { LAST_SYNCED } from '../../../syncer/translate/metadata/bookkeeping.ts';
import { namedVirtual } from '../../../syncer/translate/metadata/ownership.ts';
import { createTranslators } from '../../../syncer/translation.ts';
import { objectsOf, type Snapshot } from './snapshot.ts';

export interface CreatedObject {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The object on the other side that it is a copy of; undefined where it is no copy. */
  readonly of: NamespacedName | undefined;
  /** The virtual object, where it has the status of this copy, and the patch that clears it. */
  readonly status?: { readonly virtual: KubeObject; readonly patch: JsonObject };
}

export interface CreatedObjects {
  readonly deletable: readonly CreatedObject[];
  /** Created by this program, but `vcluster.loft.sh/controlled-by` assigns them to another controller. */
  readonly kept: readonly CreatedObject[];
}

export function createdObjects({ config, kinds, referenced }: Snapshot): CreatedObjects {
  const { names } = createTranslators(config);
  const virtualAt = (resource: Resource, key: NamespacedName): KubeObject | undefined =>
    objectsOf({ kinds }, resource).virtual.find((object) => objectKey(object) === keyOf(key));
  const copies = (resource: Resource, host: readonly KubeObject[]): CreatedObject[] =>
    host.flatMap((object) => {
      // vCluster's own copies have the same bookkeeping but no record of this program.
      if (object.metadata.annotations?.[LAST_SYNCED] === undefined) return [];
      const of = namedVirtual(object, resource, names);
      if (of === undefined) return [];
      return [
        {
          cluster: 'host',
          resource,
          object,
          of,
          ...copiedStatus(object, resource, () => virtualAt(resource, of)),
        },
      ];
    });
  const imports = referenced.flatMap(({ kind, virtual }) =>
    virtual
      .filter((object) => isImport(object, config.name))
      .map((object): CreatedObject => {
        const of = { namespace: config.host.namespace, name: object.metadata.name };
        return { cluster: 'virtual', resource: kind.virtual, object, of };
      }),
  );
  const all = [
    ...kinds.flatMap(({ resource, host }) => copies(resource, host)),
    ...referenced.flatMap(({ kind, host }) => copies(kind.host, host)),
    ...imports,
  ];
  return {
    deletable: all.filter(({ object }) => !isOptedOut(object)),
    kept: all.filter(({ object }) => isOptedOut(object)),
  };
}

/** Undefined where the virtual object has another status, or none. */
function copiedStatus(
  copy: KubeObject,
  { plural }: Resource,
  readVirtual: () => KubeObject | undefined,
): Pick<CreatedObject, 'status'> {
  const patchOf = STATUS_PATCHES.get(plural);
  const virtual = patchOf && readVirtual();
  if (virtual === undefined || patchOf === undefined || patchOf(virtual, copy) !== undefined) return {};
  const patch = patchOf(virtual, undefined);
  return patch === undefined ? {} : { status: { virtual, patch } };
}
