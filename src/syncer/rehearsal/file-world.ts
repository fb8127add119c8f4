/** Objects of files as a cluster has them: in a namespace, marked as copies, with an owner. */

import type { Config } from '../config/config.ts';
import {
  groupOf,
  isOfKind,
  nameOf,
  qualifiedKey,
  qualifiedKeyOf,
  type KubeObject,
  type Resource,
  type StringMap,
} from '../../kube/object.ts';
import { guessedResource } from '../kinds/guessed-resource.ts';
import { syncedKinds } from '../kinds/synced-kinds.ts';
import { identityAnnotations, LAST_SYNCED, virtualByAnnotations } from '../translate/bookkeeping.ts';
import type { OwnerReference } from '../translate/forge.ts';
import { markerLabels } from '../translate/labels.ts';
import { createTranslators, ownerOf } from '../translation.ts';

export interface FileWorld {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

/** Gives objects without a namespace the default one of their cluster, as kubectl does. */
export function placedWorld({ virtual, host }: FileWorld, config: Config): FileWorld {
  return { virtual: inNamespace(virtual, 'default'), host: inNamespace(host, config.host.namespace) };
}

function inNamespace(objects: readonly KubeObject[], namespace: string): KubeObject[] {
  return objects.map((object) =>
    object.metadata.namespace || object.kind === 'Namespace'
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } },
  );
}

/** Those of synced kinds, in the order of the kinds. */
export function kindsIn(objects: readonly KubeObject[], config: Config): (readonly [Resource, KubeObject])[] {
  return syncedKinds(config).flatMap(({ kind: { resource } }) =>
    objects.filter((object) => isOfKind(object, resource)).map((object) => [resource, object] as const),
  );
}

/** Whether a configuration syncs the kind of an object. */
export function isSyncedBy(config: Config): (object: KubeObject) => boolean {
  const kinds = syncedKinds(config);
  return (object) => kinds.some(({ kind }) => isOfKind(object, kind.resource));
}

export function resourceOf({ apiVersion = 'v1', kind = '' }: KubeObject, config: Config): Resource {
  return guessedResource(apiVersion, kind, config);
}

/** Without a cluster the owner's uid is known only where the owner is among the host objects. The default owner need not exist. */
export function ownerIn({ host }: FileWorld, config: Config): OwnerReference | undefined {
  const owner = ownerOf(config);
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name, isOptional } = owner;
  const owning = { group: groupOf(apiVersion), kind };
  const found = host.find((object) => isOfKind(object, owning) && object.metadata.name === name);
  if (found === undefined && isOptional) return undefined;
  return { apiVersion, kind, name, uid: found?.metadata.uid ?? '' };
}

/** Gives a host object without annotations the bookkeeping of the virtual object whose copy has its name, and a referenced one what it lacks. */
export function marking({ virtual }: FileWorld, config: Config): (host: KubeObject) => KubeObject {
  const { names } = createTranslators(config);
  const isSynced = isSyncedBy(config);
  const originals = new Map<string, KubeObject>();
  for (const object of virtual.toReversed()) {
    const resource = resourceOf(object, config);
    const target = isSynced(object)
      ? names.toHost(nameOf(object))
      : names.referenceToHost(nameOf(object), resource);
    if (target !== undefined) originals.set(qualifiedKey(resource, target), object);
  }
  const withMarker = (host: KubeObject, namespace: string, annotations: StringMap): KubeObject => {
    const labels = { ...markerLabels(names.vcluster, namespace), ...host.metadata.labels };
    return { ...host, metadata: { ...host.metadata, labels, annotations } };
  };
  return (host) => {
    const { annotations } = host.metadata;
    const isCopy = isSynced(host);
    const resource = resourceOf(host, config);
    if (annotations !== undefined) {
      const named = isCopy ? undefined : virtualByAnnotations(host, resource);
      return named === undefined ? host : withMarker(host, named.namespace, annotations);
    }
    const original = originals.get(qualifiedKeyOf(host));
    if (original === undefined) return host;
    const identity = identityAnnotations(original, resource, nameOf(host));
    const { namespace } = nameOf(original);
    return withMarker(host, namespace, isCopy ? identity : { ...identity, [LAST_SYNCED]: '' });
  };
}
