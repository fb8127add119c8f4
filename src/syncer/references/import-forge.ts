/** Builds imported copies in both directions, and tells which changes of them no API server takes. Pure. Status and finalizers are never copied. */

import {
  apiVersionOf,
  asJson,
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { StatusError } from '../../kube/status-error.ts';
import { jsonEquals, type JsonValue } from '../../base/json.ts';
import { IMPORTED_AS, OBJECT_IMPORTED } from '../translate/bookkeeping.ts';
import { NO_CONTENT } from '../translate/content.ts';
import { carryMetadata, forgeHostObject, type OwnerReference } from '../translate/forge.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import { mergePair } from '../translate/merge.ts';
import type { FlowRules, LabelTranslator, NameTranslator } from '../translate/types.ts';
import type { ReferencedKind } from './referenced-kind.ts';
import { withoutProgramKeys } from './refusals.ts';

export interface ImportForgeOptions {
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  readonly owner: OwnerReference | undefined;
}

/** Imports are one-way. Additions by other clients on the host are kept and never synced back. */
const ONE_WAY: FlowRules = {
  flowOf: () => 'toHost',
  rulesOf: () => undefined,
  twoWayPaths: () => [],
  hostOwnedPaths: () => [],
};

/** The metadata of the current copy is enough. An existing `status` is kept. */
export async function forgeHostImport(
  original: KubeObject,
  kind: ReferencedKind,
  place: { readonly target: NamespacedName; readonly host: KubeObject | undefined },
  options: ImportForgeOptions,
): Promise<KubeObject> {
  const { target, host } = place;
  const virtual = withoutProgramKeys(original);
  const { metadata } = forgeHostObject(
    { metadata: virtual.metadata },
    { ...options, kind: kind.host, content: NO_CONTENT, target },
  );
  const content = contentOf(virtual);
  if (host !== undefined && Object.hasOwn(host, 'status')) content['status'] = statusOf(host);
  const desired: KubeObject = {
    apiVersion: apiVersionOf(kind.host),
    kind: kind.host.kind,
    metadata,
    ...content,
  };
  const pair = { virtual, host, labels: options.labels, flows: ONE_WAY };
  const { host: wanted } = await mergePair(pair, { forward: async () => ({ desired }) });
  // The merge decides on the metadata only: a custom resource may have content members with the names that it merges.
  return { ...wanted, ...content, metadata: wanted.metadata };
}

/** Of the metadata, only the name is copied. */
export function forgeVirtualImport(
  source: KubeObject,
  kind: ReferencedKind,
  place: { readonly virtual: NamespacedName; readonly current: KubeObject | undefined },
  vcluster: string,
): KubeObject {
  const { virtual, current } = place;
  const marks = {
    labels: { [MANAGED_BY_LABEL]: vcluster },
    annotations: { [OBJECT_IMPORTED]: 'true', [IMPORTED_AS]: keyOf(virtual) },
  };
  const metadata = { name: virtual.name, namespace: virtual.namespace, ...marks };
  const content = contentOf(source);
  if (current !== undefined && Object.hasOwn(current, 'status')) content['status'] = statusOf(current);
  return {
    apiVersion: apiVersionOf(kind.virtual),
    kind: kind.virtual.kind,
    metadata: current === undefined ? metadata : { ...carryMetadata(current.metadata, metadata), ...marks },
    ...content,
  };
}

/** Label and annotation are required, as another client may set one of them. A tenant's copy of an import, made from its YAML, names that one; imports of
 * earlier versions name none. */
export function isImport(object: KubeObject, vcluster: string): boolean {
  const { labels, annotations } = object.metadata;
  const key = objectKey(object);
  return (
    annotations?.[OBJECT_IMPORTED] === 'true' &&
    labels?.[MANAGED_BY_LABEL] === vcluster &&
    (annotations[IMPORTED_AS] ?? key) === key
  );
}

function contentOf(object: KubeObject): Record<string, JsonValue> {
  const content: Partial<KubeObject> = { ...object };
  for (const member of ['metadata', 'status', 'apiVersion', 'kind']) delete content[member];
  return content as Record<string, JsonValue>; // everything but metadata is JSON
}

function statusOf(object: KubeObject): JsonValue {
  return (object['status'] ?? null) as JsonValue; // everything but metadata is JSON
}

/** The data of an immutable Secret or ConfigMap, and the type of any Secret. Deleting objects of other kinds could have side effects. */
function mayBeImmutable({ group, kind }: Resource): boolean {
  return group === '' && (kind === 'Secret' || kind === 'ConfigMap');
}

/** The API server rejects this change of the copy, so the copy has to be deleted and created again. */
export function isKnownImmutable(actual: KubeObject, wanted: KubeObject, resource: Resource): boolean {
  if (!mayBeImmutable(resource) || actual['immutable'] !== true) return false;
  const members = ['data', 'binaryData', 'immutable', 'type'];
  return members.some((member) => !jsonEquals(asJson(actual)[member], asJson(wanted)[member]));
}

/** Any other refusal, as of a policy of the host or of annotations that are too long, would refuse the new copy, too. */
export function isRefusedAsImmutable(error: unknown, resource: Resource): boolean {
  const isRefused = error instanceof StatusError && error.code === 422;
  return isRefused && error.message.includes('field is immutable') && mayBeImmutable(resource);
}
