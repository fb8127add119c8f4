/** Protects fields that patches may not change: the identity of an object, and the bookkeeping of a copy. Merges results for the whole object. */

import { withMember } from '../translate/paths.ts';
import { isBookkeepingAnnotation } from '../translate/bookkeeping.ts';
import { isBookkeepingLabel } from '../translate/labels.ts';
import {
  isJsonObject,
  jsonEquals,
  objectField,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import type { ConcretePath } from '../translate/types.ts';

/** What no patch may change: the identity of an object, what an API server sets, and what decides when a copy goes. */
export const OWN_METADATA: readonly string[] = (
  'name namespace uid generateName selfLink resourceVersion generation creationTimestamp deletionTimestamp ' +
  'deletionGracePeriodSeconds finalizers ownerReferences managedFields'
).split(' ');

export function isProtected(path: ConcretePath): boolean {
  const [root, field, key] = path;
  if (root !== 'metadata' || typeof field !== 'string') return false;
  if (path.length === 2) return OWN_METADATA.includes(field);
  if (path.length !== 3 || typeof key !== 'string') return false;
  if (field === 'annotations') return isBookkeepingAnnotation(key);
  return field === 'labels' && isBookkeepingLabel(key);
}

type Restored =
  | { readonly ok: true; readonly object: JsonObject }
  | { readonly ok: false; readonly path: ConcretePath; readonly message: string };

/** Bookkeeping keeps its old value, because an expression over all annotations does not see it; so does other metadata that is no longer there. A
 * change of it is an error. */
export function restoreProtected(
  before: JsonObject,
  after: JsonObject,
  onIdentityChange: 'fail' | 'restore',
): Restored {
  const old = ownValue(before, 'metadata');
  const now = ownValue(after, 'metadata');
  if (old === now) return { ok: true, object: after };
  if (now !== undefined && !isJsonObject(now)) {
    return { ok: false, path: ['metadata'], message: 'metadata must stay an object' };
  }
  const oldMeta = objectField(before, 'metadata');
  let metadata = now ?? {};
  for (const key of OWN_METADATA) {
    const [was, is] = [ownValue(oldMeta, key), ownValue(metadata, key) ?? undefined];
    if (jsonEquals(was, is)) continue;
    if (is !== undefined && onIdentityChange === 'fail') {
      return { ok: false, path: ['metadata', key], message: `a patch may not change metadata.${key}` };
    }
    metadata = withMember(metadata, key, was);
  }
  metadata = restoreKeys(oldMeta, metadata, 'annotations', isBookkeepingAnnotation);
  metadata = restoreKeys(oldMeta, metadata, 'labels', isBookkeepingLabel);
  const isUnchanged = metadata === now || (now === undefined && Object.keys(metadata).length === 0);
  return { ok: true, object: isUnchanged ? after : withMember(after, 'metadata', metadata) };
}

function restoreKeys(
  before: JsonObject,
  after: JsonObject,
  field: 'annotations' | 'labels',
  isBookkeeping: (key: string) => boolean,
): JsonObject {
  const [old, now] = [objectField(before, field), ownValue(after, field) ?? {}];
  if (old === now || !isJsonObject(now)) return after; // no longer a map: the validation reports it
  const differing = Object.keys({ ...old, ...now })
    .filter(isBookkeeping)
    .filter((key) => old[key] !== now[key]);
  if (differing.length === 0) return after;
  const map = differing.reduce((changed, key) => withMember(changed, key, ownValue(old, key)), now);
  return withMember(after, field, map);
}

export function withKind(object: JsonValue, own: JsonObject): JsonValue {
  if (!isJsonObject(object)) return object;
  const result: JsonObject = { ...object };
  for (const key of ['apiVersion', 'kind']) {
    const value = ownValue(own, key);
    if (value !== undefined) result[key] = value;
  }
  return result;
}

/** Merges the result of a patch into the object field by field, as vCluster does; null deletes a field. */
export function layOver(object: JsonObject, result: JsonObject): JsonObject {
  const merged: JsonObject = { ...object };
  for (const key of Object.keys(result)) {
    const member = result[key] ?? null;
    if (member === null && object[key] !== null) delete merged[key];
    else setOwn(merged, key, member);
  }
  return merged;
}
