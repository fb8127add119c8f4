/** Successful responses of an API server, checked as far as the rest of the program relies on them. */

import { apiVersionOf, type KubeObject, type NamespacedName, type Resource } from '../object.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { MalformedResponseError, type ObjectList } from '../types.ts';

/** The object that a request was about. */
export interface RequestedObject {
  readonly resource: Resource;
  readonly key: NamespacedName;
  /** False for a dry run: nothing is stored, so that the response has no resourceVersion. */
  readonly isStored: boolean;
}

/**
 * The requested object: of that kind, name and namespace, with uid and resourceVersion. Throws `MalformedResponseError` for anything else, so
 * that the response of a misbehaving server or proxy never replaces what a cache holds.
 */
export function asObject(value: JsonValue, { resource, key, isStored }: RequestedObject): KubeObject {
  const apiVersion = apiVersionOf(resource);
  const { metadata, ...rest } = asAnyObject(value);
  const is = (actual: unknown, expected: string): boolean => actual === expected;
  const isIt =
    is(rest.apiVersion, apiVersion) &&
    is(rest.kind, resource.kind) &&
    is(metadata.name, key.name) &&
    is(metadata.namespace ?? '', key.namespace);
  if (!isIt) {
    const wanted = `${apiVersion} ${resource.kind} ${keyText(key)}`;
    throw new MalformedResponseError(`the response is not the object ${wanted}: ${excerptOf(value)}`);
  }
  if (isStored && !(isText(metadata.uid) && isText(metadata.resourceVersion))) {
    const message = `the response has no uid or no resourceVersion: ${excerptOf(value)}`;
    throw new MalformedResponseError(message);
  }
  return value as unknown as KubeObject; // checked as far as anything relies on it; the rest is raw JSON
}

/** Checks the response to a deletion: a `Status` of success, or the deleted object. Throws `MalformedResponseError`. */
export function checkDeletion(value: JsonValue, deleted: RequestedObject): void {
  const isSuccess = isJsonObject(value) && value['kind'] === 'Status' && value['status'] === 'Success';
  if (!isSuccess) asObject(value, deleted);
}

/** Items of a list come without their type; it is added, so that they equal the same objects from a watch. */
export function asList(value: JsonValue, resource: Resource): ObjectList {
  const metadata = isJsonObject(value) ? value['metadata'] : undefined;
  const items = isJsonObject(value) ? (value['items'] ?? []) : undefined;
  if (!isJsonObject(metadata) || !Array.isArray(items)) {
    throw new MalformedResponseError(`the response is not a list of ${resource.plural}: ${excerptOf(value)}`);
  }
  const apiVersion = apiVersionOf(resource);
  const objects = items.map((item) => {
    const object = asAnyObject(item);
    object.apiVersion ??= apiVersion;
    object.kind ??= resource.kind;
    return object;
  });
  return {
    resourceVersion: text(metadata['resourceVersion']),
    continueToken: text(metadata['continue']),
    items: objects,
  };
}

function asAnyObject(value: JsonValue): KubeObject {
  if (!isJsonObject(value) || !isJsonObject(value['metadata'])) {
    throw new MalformedResponseError(`the response is not a Kubernetes object: ${excerptOf(value)}`);
  }
  return value as unknown as KubeObject; // it has metadata, and the rest is raw JSON
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function keyText({ namespace, name }: NamespacedName): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}

function excerptOf(value: JsonValue): string {
  return JSON.stringify(value).slice(0, 80);
}
