/** The round trip of a case: every copy translated back, with nothing changed on the host, has to give the virtual object again. */

import { PatchError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asJson, keyOf, objectKey, type KubeObject } from '../../kube/object.ts';
import { reverseObject } from '../../syncer/reconcile/copy-forge.ts';
import type { FileWorld, KindPipeline } from '../offline/offline-sync.ts';
import { backTranslate, type Translators } from '../../syncer/translate/forge.ts';
import { withValueAt } from '../../syncer/translate/json-path.ts';
import { stringMapOf } from '../../syncer/translate/metadata/labels.ts';
import { virtualOf } from '../../syncer/translate/metadata/ownership.ts';
import { compareWhole, type Mismatch } from './compare.ts';
import { errorEntry } from './outcome.ts';

/** Where the round trip of the copies of `world.virtual` is not the identity. */
export async function roundTrips(
  world: FileWorld,
  copies: readonly KubeObject[],
  pipelines: readonly KindPipeline[],
  translators: Translators,
): Promise<Mismatch[]> {
  const parts = pipelines.map((one) => ({ ...one, ...translators }));
  return (await Promise.all(parts.map((options) => roundTrip(world, copies, options)))).flat();
}

async function roundTrip(
  world: FileWorld,
  copies: readonly KubeObject[],
  options: KindPipeline & Translators,
): Promise<Mismatch[]> {
  const { resource } = options.kind;
  const virtual = new Map(
    world.virtual.filter(({ kind }) => kind === resource.kind).map((object) => [objectKey(object), object]),
  );
  const mismatches: Mismatch[] = [];
  for (const copy of copies.filter(({ kind }) => kind === resource.kind)) {
    const name = virtualOf(copy, resource, options.names);
    const original = name && virtual.get(keyOf(name));
    if (name === undefined || original === undefined) continue;
    const subject = `round trip ${resource.kind} ${keyOf(name)}`;
    try {
      const reversed = await reverseObject(copy, original, name.namespace, options.pipeline);
      const back = backTranslate(reversed, name, { ...options, content: options.kind.content }, original);
      mismatches.push(...compareWhole(subject, crossing(original, options), crossing(back, options)));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      mismatches.push({ subject, path: error.path, expected: 'no error', actual: errorEntry(error) });
    }
  }
  return mismatches;
}

/** The part of an object that goes to the host and comes back, as an API server stores it, without the fields that only the host sets. */
function crossing(object: KubeObject, { pipeline, kind, labels }: KindPipeline & Translators): JsonObject {
  const metadata = { ...object.metadata };
  for (const member of ['annotations', 'labels'] as const) {
    const all = Object.entries(stringMapOf(metadata[member]));
    const isExcluded = (key: string): boolean =>
      labels.isExcluded(member, key) || (member === 'labels' && kind.content.isOwnLabel(key));
    const entries = all.filter(([key]) => !isExcluded(key));
    delete metadata[member];
    if (entries.length > 0) metadata[member] = Object.fromEntries(entries);
  }
  const { apiVersion: _apiVersion, kind: _kind, ...content } = object;
  for (const member of kind.content.members) delete content[member];
  let crossed: JsonValue = asJson({ ...content, ...kind.content.stored(asJson(object)), metadata });
  for (const path of pipeline.hostOwnedPaths(crossed).toReversed())
    crossed = withValueAt(crossed, path, undefined);
  return isJsonObject(crossed) ? crossed : {};
}
