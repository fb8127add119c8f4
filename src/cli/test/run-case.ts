/** Runs one test case offline, in the directions for which it has expectations. */

import { objectKey, type KubeObject, asJson, keyOf } from '../../kube/object.ts';
import type { Config } from '../../config/config.ts';
import {
  placedWorld,
  renderToHost,
  renderToVirtual,
  type OfflineOptions,
  type FileWorld,
  type KindPipeline,
} from '../offline/offline-sync.ts';
import {
  type Mismatch,
  compareOutcome,
  outcomeOf,
  type Outcome,
  compareWhole,
  errorEntry,
} from './expectations.ts';
import type { TestCase } from './test-file.ts';
import { PatchError } from '../../base/errors.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { locate } from '../../syncer/patch/walk.ts';
import type { ConcretePath } from '../../syncer/translate/types.ts';
import { translatedBack } from '../../syncer/reconcile/copy.ts';
import { withValueAt } from '../../syncer/translate/paths.ts';
import { stringMapOf } from '../../syncer/translate/labels.ts';
import { virtualOf } from '../../syncer/translate/ownership.ts';

export interface CaseRun {
  readonly forward: Outcome;
  /** Undefined: the case has no expectations for it. */
  readonly reverse: Outcome | undefined;
  /** Where an expectation does not hold. */
  readonly mismatches: readonly Mismatch[];
  /** Where the round trip is not the identity: no expectation could be changed so that it holds. */
  readonly brokenRoundTrip: readonly Mismatch[];
  /** See `RenderedWorld`; empty where the case expects Events. */
  readonly missing: readonly string[];
}

export async function runCase(test: TestCase, config: Config, options: OfflineOptions): Promise<CaseRun> {
  const world = placedWorld(test, config);
  const there = await renderToHost(world, config, options);
  const { rendered, pipelines } = there;
  const forward = outcomeOf(there, 'host');
  const missing = test.expect.events === undefined ? there.missing : [];
  const copies = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const mismatches = compareOutcome('', test.expect, forward);
  const brokenRoundTrip = test.roundTrip ? await roundTrips(world, copies, pipelines) : [];
  if (test.reverse === undefined || pipelines.length === 0)
    return { forward, reverse: undefined, mismatches, brokenRoundTrip, missing };
  const changed = { virtual: world.virtual, host: hostAfter(world.host, copies) };
  const back = await renderToVirtual(changed, config, options);
  const reverse = outcomeOf(back, 'virtual');
  mismatches.push(...compareOutcome('reverse: ', test.reverse, reverse));
  return { forward, reverse, mismatches, brokenRoundTrip, missing };
}

/** The host objects that flow back: those of the case; where it gives none, or only a name, the copy of the forward run. */
function hostAfter(given: readonly KubeObject[], copies: readonly KubeObject[]): KubeObject[] {
  const isWritten = (object: KubeObject): boolean =>
    object.metadata.annotations !== undefined ||
    Object.keys(object).some((key) => !['apiVersion', 'kind', 'metadata'].includes(key));
  const idOf = (object: KubeObject): string => `${object.kind ?? ''} ${objectKey(object)}`;
  const written = new Map(given.filter(isWritten).map((object) => [idOf(object), object]));
  return [...written.values(), ...copies.filter((copy) => !written.has(idOf(copy)))];
}

// The round trip of a case: every copy translated back, with nothing changed on the host, has to give the virtual object again.

/** Where the round trip of the copies of `world.virtual` is not the identity. */
async function roundTrips(
  world: FileWorld,
  copies: readonly KubeObject[],
  pipelines: readonly KindPipeline[],
): Promise<Mismatch[]> {
  return (await Promise.all(pipelines.map((one) => roundTrip(world, copies, one)))).flat();
}

async function roundTrip(
  world: FileWorld,
  copies: readonly KubeObject[],
  parts: KindPipeline,
): Promise<Mismatch[]> {
  const { resource } = parts.kind;
  const virtual = new Map(
    world.virtual.filter(({ kind }) => kind === resource.kind).map((object) => [objectKey(object), object]),
  );
  const mismatches: Mismatch[] = [];
  for (const copy of copies.filter(({ kind }) => kind === resource.kind)) {
    const name = virtualOf(copy, resource, parts.names);
    const original = name && virtual.get(keyOf(name));
    if (name === undefined || original === undefined) continue;
    const subject = `round trip ${resource.kind} ${keyOf(name)}`;
    try {
      const back = await translatedBack(copy, name, parts, original);
      mismatches.push(...compareWhole(subject, crossing(original, parts), crossing(back, parts)));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      mismatches.push({ subject, path: error.path, expected: 'no error', actual: errorEntry(error) });
    }
  }
  return mismatches;
}

/** The part of an object that goes to the host and comes back, as an API server stores it, without the fields that only the host sets. */
function crossing(object: KubeObject, parts: KindPipeline): JsonObject {
  const { pipeline, kind, labels } = parts;
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
