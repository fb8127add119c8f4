/** Types of Kubernetes objects, keys, versions and resources. Objects are raw JSON: unknown fields are kept. */

import { cloneJson, objectField, type JsonObject, type JsonValue } from '../base/json.ts';

export type StringMap = Record<string, string>;

export interface ManagedFieldsEntry extends JsonObject {
  manager: string;
  operation: string;
  /** RFC 3339, of the manager's last change. */
  time?: string;
}

/** Field managers of the controllers of Kubernetes: the names of the programs that run them, of k3s and MicroK8s too. */
export const CONTROLLER_MANAGERS: ReadonlySet<string> = new Set([
  'kube-controller-manager',
  'k3s',
  'kubelite',
]);

/** The metadata fields that this program reads; all others survive untouched. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: StringMap;
  annotations?: StringMap;
  managedFields?: ManagedFieldsEntry[];
  [field: string]: JsonValue | undefined;
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  [field: string]: JsonValue | ObjectMeta | undefined;
}

/** Members of the metadata that an API server sets. */
export const SERVER_SET = ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields'];

/** The same object, typed as plain JSON. */
export function asJson(object: KubeObject): JsonObject {
  return object as unknown as JsonObject;
}

/** The same JSON, typed as an object of an API server. The caller knows that it has `metadata` with a name. */
export function asObject(json: JsonObject): KubeObject {
  return json as unknown as KubeObject;
}

/** Shares nothing with the original. */
export function cloneObject(object: KubeObject): KubeObject {
  return asObject(cloneJson(asJson(object)));
}

/** Metadata of an object as plain JSON. */
export function metadataOf(object: JsonObject): JsonObject {
  return objectField(object, 'metadata');
}

/** Namespace and name; a cluster-scoped object has the namespace `''`. */
export interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/** `namespace/name`, or `name` alone for a cluster-scoped object: the form of work queue and cache keys. */
export type ObjectKey = string;

export function keyOf({ namespace, name }: NamespacedName): ObjectKey {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** `namespace/name`, or `/name`: the text by which an API server orders lists, and continues them. */
export function orderedKey({ namespace, name }: NamespacedName): string {
  return `${namespace}/${name}`;
}

export function nameOf({ metadata: { namespace = '', name } }: KubeObject): NamespacedName {
  return { namespace, name };
}

/** The key of an object, from its metadata. */
export function objectKey(object: KubeObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

export function parseKey(key: ObjectKey): NamespacedName {
  const slash = key.indexOf('/');
  return slash < 0
    ? { namespace: '', name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** It is being deleted, and exists until its last finalizer is removed. */
export function isTerminating({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function finalizersOf({ metadata }: KubeObject): readonly string[] {
  const { finalizers } = metadata;
  return Array.isArray(finalizers) ? finalizers.filter((one) => typeof one === 'string') : [];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A served resource, as discovery describes it. */
export interface Resource extends GroupVersionKind {
  /** Lower-case plural, the path segment. */
  readonly plural: string;
  readonly isNamespaced: boolean;
}

/** Go's `schema.GroupVersionKind.String()`: Endpoints is `/v1, Kind=Endpoints`. */
export function gvkString({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}, Kind=${kind}`;
}

/** `v1`, or `group/version`. */
export function apiVersionOf({ group, version }: Pick<GroupVersionKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The group in an apiVersion; '' for the core group. */
export function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')));
}

/** Several groups may serve a kind of one name: `Service` is one of Kubernetes and one of Knative. */
export function isOfKind(
  { apiVersion, kind }: KubeObject,
  resource: Pick<GroupVersionKind, 'group' | 'kind'>,
): boolean {
  return kind === resource.kind && groupOf(apiVersion ?? '') === resource.group;
}

/** A kind as a user names it. */
export interface KindName {
  readonly kind: string;
  /** Undefined: of any group. */
  readonly group: string | undefined;
}

/** `wanted`: undefined for any kind. */
export function isOfKindNamed(
  { kind, group }: Pick<GroupVersionKind, 'group' | 'kind'>,
  wanted: KindName | undefined,
): boolean {
  return wanted === undefined || (kind === wanted.kind && (wanted.group ?? group) === group);
}

/** `Service`, `Service.serving.knative.dev`. */
export function printKindName({ kind, group }: KindName): string {
  return group === undefined || group === '' ? kind : `${kind}.${group}`;
}

/** Of an object among those of all kinds, whatever their versions. */
export function qualifiedKey(
  { group, kind }: Pick<GroupVersionKind, 'group' | 'kind'>,
  name: NamespacedName,
): string {
  return `${kind}.${group} ${keyOf(name)}`;
}

export function qualifiedKeyOf(object: KubeObject): string {
  const { apiVersion = '', kind = '' } = object;
  return qualifiedKey({ group: groupOf(apiVersion), kind }, nameOf(object));
}

export function namespacedResource(apiVersion: string, kind: string, plural: string): Resource {
  const group = groupOf(apiVersion);
  return { group, version: apiVersion.slice(apiVersion.indexOf('/') + 1), kind, plural, isNamespaced: true };
}

export const ENDPOINTS = namespacedResource('v1', 'Endpoints', 'endpoints');
export const ENDPOINT_SLICES = namespacedResource('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices');
export const SERVICES = namespacedResource('v1', 'Service', 'services');
export const NAMESPACES: Resource = {
  ...namespacedResource('v1', 'Namespace', 'namespaces'),
  isNamespaced: false,
};
export const SECRETS = namespacedResource('v1', 'Secret', 'secrets');
export const CONFIG_MAPS = namespacedResource('v1', 'ConfigMap', 'configmaps');
export const EVENTS = namespacedResource('events.k8s.io/v1', 'Event', 'events');

/** Lists that a kube-apiserver returns as null when they are empty: they have no `omitempty` in its Go types. */
const LISTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Endpoints', ['subsets']],
  ['EndpointSlice', ['endpoints', 'ports']],
]);

/** The same object, in which such a null is the empty list. */
export function withLists(object: KubeObject): KubeObject {
  for (const list of LISTS.get(object.kind ?? '') ?? []) if (object[list] === null) object[list] = [];
  return object;
}

// Versions of objects of one API server.

/**
 * Negative when `a` is older than `b`, 0 when equal, positive when newer; undefined when they cannot be compared. Kubernetes'
 * versions are decimal numbers of any length that grow; another server's may be anything.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === b) return a === undefined ? undefined : 0;
  if (a === undefined || b === undefined || !NUMBER.test(a) || !NUMBER.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

const NUMBER = /^(0|[1-9]\d*)$/;

/** False if the versions cannot be compared. */
export function isOlder(a: string | undefined, b: string | undefined): boolean {
  const order = compareVersions(a, b);
  return order !== undefined && order < 0;
}

/** RFC 3339 with microseconds, as `MicroTime` requires; the clock has milliseconds. */
export function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}

/** The last second of the year 9999, where RFC 3339 ends. */
export const TIME_MS_MAX = 253_402_300_799_000;

/** Whether {@link timeText} can express it. */
export function isTimeMs(epochMs: number): boolean {
  return epochMs >= 0 && epochMs <= TIME_MS_MAX;
}

/** RFC 3339 with seconds, as an API server writes times. */
export function timeText(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}
