/** Copies translated back, with nothing changed on the host, which has to give the virtual objects again. */

import { PatchError } from '../../base/errors.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  asJson,
  isOfKind,
  keyOf,
  objectKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import { locate } from '../patch/walk.ts';
import { translatedBack } from '../reconcile/copy.ts';
import { virtualOf, withoutKeys } from '../translate/bookkeeping.ts';
import { withValueAt } from '../translate/paths.ts';
import type { ConcretePath } from '../translate/types.ts';
import type { KindPipeline } from './pipelines.ts';

/** One object, or the patch that fails on it. */
export interface RoundTrip {
  readonly resource: Resource;
  readonly key: ObjectKey;
  /** What of the object goes to the host and comes back. */
  readonly result: { readonly before: JsonObject; readonly after: JsonObject } | PatchError;
}

export async function roundTrips(
  originals: readonly KubeObject[],
  copies: readonly KubeObject[],
  pipelines: readonly KindPipeline[],
): Promise<RoundTrip[]> {
  return (await Promise.all(pipelines.map((one) => ofKind(originals, copies, one)))).flat();
}

async function ofKind(
  originals: readonly KubeObject[],
  copies: readonly KubeObject[],
  parts: KindPipeline,
): Promise<RoundTrip[]> {
  const { resource } = parts.kind;
  const virtual = new Map(
    originals.filter((object) => isOfKind(object, resource)).map((object) => [objectKey(object), object]),
  );
  const found: RoundTrip[] = [];
  for (const copy of copies.filter((object) => isOfKind(object, resource))) {
    const name = virtualOf(copy, resource, parts.names);
    const original = name && virtual.get(keyOf(name));
    if (name === undefined || original === undefined) continue;
    const trip = { resource, key: keyOf(name) };
    try {
      const back = await translatedBack(copy, name, parts, original);
      const result = { before: crossing(original, parts), after: crossing(back, parts) };
      found.push({ ...trip, result });
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      found.push({ ...trip, result: error });
    }
  }
  return found;
}

/** The part of an object that goes to the host and comes back, as an API server stores it, without the fields that only the host sets. */
function crossing(object: KubeObject, parts: KindPipeline): JsonObject {
  const { pipeline, kind, labels } = parts;
  const { metadata } = withoutKeys(
    object,
    (member, key) =>
      labels.isExcluded(member, key) ||
      kind.content.crossingOf?.(member, key) !== undefined ||
      (member === 'labels' && kind.content.isOwnLabel(key)),
  );
  const { apiVersion: _apiVersion, kind: _kind, ...content } = object;
  for (const member of kind.content.members) delete content[member];
  let crossed: JsonValue = asJson({ ...content, ...kind.content.stored(asJson(object)), metadata });
  for (const path of pipeline.hostOwnedPaths(crossed).toReversed())
    crossed = withValueAt(crossed, path, undefined);
  for (const path of oneWayLists(crossed, parts).toReversed())
    crossed = withValueAt(crossed, path, undefined);
  return isJsonObject(crossed) ? crossed : {};
}

/** Lists of which a patch that has no way back may add, remove or order elements. */
function oneWayLists(object: JsonValue, { options }: KindPipeline): readonly ConcretePath[] {
  return options.compiled.patches.flatMap(({ segments, actions }) => {
    const end = segments.findLastIndex(({ kind }) => kind === 'key') + 1;
    if (actions.toVirtual.kind !== 'keep' || end === segments.length || end === 0) return [];
    const isListOrMap = locate({ segments: segments.slice(0, end) }, object);
    return isListOrMap.filter((path) => Array.isArray(valueAt(object, path)));
  });
}
