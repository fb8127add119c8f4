/** Validation of metadata: kube-apiserver 1.36's `ValidateObjectMeta`, for the fields that a patch can change. */

import { annotationKeyProblem, labelValueProblem, qualifiedNameProblem } from './name-syntax.ts';
import {
  below,
  checkList,
  checkObject,
  checkString,
  describe,
  isAbsent,
  isOld,
  refuse,
  type Place,
} from './place.ts';
import { isJsonObject, type JsonValue } from '../../../base/json.ts';

/** Kubernetes' `TotalAnnotationSizeLimitB`: the sum over all keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

export function checkMetadata(place: Place): void {
  if (place.now === place.old) return;
  if (!isAbsent(place.now)) checkObject(place);
  checkMap(below(place, 'labels'), (key) => qualifiedNameProblem(key), labelValueProblem);
  checkMap(below(place, 'annotations'), annotationKeyProblem, () => undefined);
  checkAnnotationSize(below(place, 'annotations'));
  const finalizers = below(place, 'finalizers');
  checkList(finalizers, (item) => {
    checkString(item);
    if (typeof item.now === 'string') refuse(item.path, qualifiedNameProblem(item.now));
  });
  checkOwners(below(place, 'ownerReferences'));
  for (const key of [
    'generateName',
    'resourceVersion',
    'selfLink',
    'creationTimestamp',
    'deletionTimestamp',
  ]) {
    checkString(below(place, key));
  }
}

function checkMap(
  place: Place,
  keyProblem: (key: string) => string | undefined,
  valueProblem: (value: string) => string | undefined,
): void {
  if (isOld(place) || isAbsent(place.now)) return;
  if (!isJsonObject(place.now)) {
    refuse(place.path, `must be a map of strings, not ${describe(place.now)}`);
    return;
  }
  for (const key of Object.keys(place.now)) {
    const value = below(place, key);
    if (isOld(value)) continue;
    // An invalid key that existed before was not added by a patch.
    if (value.old === undefined) refuse(value.path, keyProblem(key)?.replace(/^/, 'its key '));
    checkString(value);
    if (typeof value.now === 'string') refuse(value.path, valueProblem(value.now));
  }
}

function checkAnnotationSize({ path, now, old }: Place): void {
  const bytes = mapBytes(now);
  if (bytes > ANNOTATION_BYTES_MAX && bytes > mapBytes(old)) {
    refuse(path, `must have at most ${ANNOTATION_BYTES_MAX} bytes in all, these are ${bytes}`);
  }
}

function mapBytes(map: JsonValue | undefined): number {
  if (!isJsonObject(map)) return 0;
  return Object.entries(map).reduce(
    (sum, [key, value]) =>
      sum + Buffer.byteLength(key) + (typeof value === 'string' ? Buffer.byteLength(value) : 0),
    0,
  );
}

function checkOwners(place: Place): void {
  checkList(place, (owner) => {
    checkObject(owner);
    for (const key of ['apiVersion', 'kind', 'name', 'uid']) {
      const field = below(owner, key);
      checkString(field);
      if (isAbsent(field.now) || field.now === '') refuse(field.path, 'must not be empty');
    }
    for (const key of ['controller', 'blockOwnerDeletion']) {
      const field = below(owner, key);
      if (!isAbsent(field.now) && typeof field.now !== 'boolean') {
        refuse(field.path, `must be true or false, not ${describe(field.now)}`);
      }
    }
  });
}
