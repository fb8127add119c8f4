/** The object that a request is about, and its names in errors and in the store. */

import type { JsonObject } from '../../base/json.ts';
import { type StoredEntry, type StoreKey, StoreError } from '../storage/store.ts';
import type { ResourceDefinition, Subresource } from './resource-definition.ts';
import { shortened, badRequest, type GroupName, conflict, MODIFIED, notFound } from '../status.ts';
import { metadataOf, text } from '../metadata.ts';
import { labelProblem } from '../../kube/names.ts';

export interface Target {
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly name: string;
  /** Absent: the object itself. */
  readonly subresource?: Subresource | undefined;
  /** See `Authorizer.visibleTo`. */
  readonly isVisible?: ((object: JsonObject) => boolean) | undefined;
}

export function groupName(definition: ResourceDefinition): GroupName {
  return { group: definition.group, resource: definition.plural };
}

/** Validation errors name the kind instead of the resource. */
export function kindName(definition: ResourceDefinition): GroupName {
  return { group: definition.view?.validationGroup ?? definition.group, resource: definition.kind };
}

export function storeKey({ definition, namespace, name }: Target): StoreKey {
  return { resource: definition.storage, namespace, name };
}

/** The stored object in the shape of this kind, without kind and apiVersion. */
export function currentForm(definition: ResourceDefinition, entry: StoredEntry): JsonObject {
  return definition.view ? definition.view.fromStorage(entry.value) : entry.value;
}

/** Throws 400 unless name and namespace of the body are those of the URL. */
export function checkName(target: Target, body: JsonObject): void {
  const metadata = metadataOf(body);
  const name = text(metadata, 'name');
  if (name === '') {
    throw badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== target.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  }
  const namespace = text(metadata, 'namespace');
  if (target.definition.isNamespaced && namespace !== '' && namespace !== target.namespace) {
    throw badRequest(
      `the namespace of the object (${namespace}) does not match the namespace on the URL (${target.namespace})`,
    );
  }
}

/** Throws 400 when the body has another namespace than the URL. */
export function rejectOtherNamespace({ definition, namespace }: Target, body: JsonObject): void {
  const sent = text(metadataOf(body), 'namespace');
  if (sent === '' || sent === namespace) return;
  if (!definition.isNamespaced) {
    // As in a kube-apiserver, the namespace of a cluster-scoped object is ignored if it is a valid name.
    const problem = labelProblem(sent);
    if (problem === undefined) return;
    throw badRequest(`metadata.namespace: Invalid value: ${JSON.stringify(shortened(sent))}: ${problem}`);
  }
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

// Conflicts between writes: how the store reports them, and how the API does.

/** The object has changed or disappeared since it was read: a write may be retried. */
export function isRevisionConflict(error: unknown): boolean {
  return error instanceof StoreError && (error.code === 'conflict' || error.code === 'missing');
}

/** The API error for a `StoreError` of a conflict; any other error as it is. */
export function asConflict(error: unknown, target: Target): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.code === 'missing') return notFound(groupName(target.definition), target.name);
  if (error.code === 'conflict') return conflict(groupName(target.definition), target.name, MODIFIED);
  return error;
}

/** `actual`: `''` without an object. A request with the uid of a deleted object must not create another one. */
export function checkUid(target: Target, actual: string, requested: string): void {
  if (requested === '' || requested === actual) return;
  const why = `Precondition failed: UID in precondition: ${requested}, UID in object meta: ${actual}`;
  throw conflict(groupName(target.definition), target.name, why);
}
