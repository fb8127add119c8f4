/** The result of one run as the page shows it. */

import type { JsonObject } from '../../base/json.ts';
import type { Config } from '../../config/types.ts';
import { objectKey, type KubeObject } from '../../kube/object.ts';
import { disablingSetting, SYNCABLE_RESOURCES, syncedKinds } from '../../syncer/kinds/synced-kinds.ts';
import type { Rendered } from '../offline/offline-sync.ts';
import { printObject } from '../objects/one-object.ts';
import { withoutBookkeeping } from '../objects/without-bookkeeping.ts';
import { describeFailure } from '../offline/patch-failure.ts';

/** `{result, plainResult, imports, notes}`; `isSynced` tells copies from the objects that references import. */
export function describeRendered(
  rendered: readonly Rendered[],
  isSynced: (object: KubeObject) => boolean,
): JsonObject & { notes: JsonObject[] } {
  const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const synced = objects.filter(isSynced);
  const imports = objects.filter((object) => !isSynced(object));
  return {
    result: printAll(synced),
    plainResult: printAll(synced.map(withoutBookkeeping)),
    imports: printAll(imports.map(withoutBookkeeping)),
    notes: rendered.flatMap(noteOf),
  };
}

/** Why nothing of what was given is synced; empty: something is. Objects of other kinds beside it are what patches and Services need. */
export function unsyncedNotes(config: Config, given: readonly KubeObject[]): JsonObject[] {
  const synced = syncedKinds(config).map(({ kind }) => kind.resource.kind);
  if (given.some(({ kind = '' }) => synced.includes(kind))) return [];
  const syncs = synced.length === 0 ? 'nothing' : synced.join(', ');
  if (given.length === 0)
    return [{ level: 'info', text: `there is no object to sync: paste one of ${syncs}` }];
  return given.map((object) => {
    const kind = object.kind ?? '';
    const resource = SYNCABLE_RESOURCES.find((one) => one.kind === kind);
    const setting = resource && disablingSetting(config, resource);
    const reason =
      setting ?? `${kind} is not a kind that endpoint-syncer syncs; this configuration syncs ${syncs}`;
    return { level: 'warning', text: `${kind} ${objectKey(object)} is not synced: ${reason}` };
  });
}

/** The line that a command would write to standard error. */
function noteOf(one: Rendered): JsonObject[] {
  switch (one.kind) {
    case 'object':
      return [];
    case 'skipped':
      return [{ level: 'info', text: `skipped ${one.of} ${one.key}: ${one.reason}` }];
    case 'refused':
      return [{ level: 'warning', text: `skipped ${one.of} ${one.key}: ${one.reason}` }];
    case 'elsewhere':
      return [{ level: 'info', text: `${objectKey(one.object)} is imported into the other cluster` }];
    case 'failed':
      return [{ level: 'error', text: `failed ${one.of} ${one.key}: ${describeFailure(one.error)}` }];
    default:
      return one satisfies never;
  }
}

export function printAll(objects: readonly KubeObject[]): string {
  const json = objects as unknown as JsonObject[]; // Kubernetes objects are JSON
  return json.map((object) => printObject(object, 'yaml')).join('---\n');
}
