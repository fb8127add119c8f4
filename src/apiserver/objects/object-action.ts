/** POST to a subresource that is an action. */

import { cloneJson, type JsonObject } from '../../base/json.ts';
import { currentForm, type Target } from './target.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ObjectRegistry } from './object-registry.ts';
import type { WriteContext, Written } from './object-writer.ts';
import type { SubresourceAction } from './resource-definition.ts';

/** Retried after a conflict with another write. `body` is decoded. */
export function performAction(
  registry: ObjectRegistry,
  target: Target,
  action: SubresourceAction,
  body: JsonObject,
  context: WriteContext,
): Promise<Written> {
  const { definition } = target;
  const change = async (_current: JsonObject, entry: StoredEntry): Promise<Written> => {
    const previous = currentForm(definition, entry);
    await registry.writer.admit({ target, next: cloneJson(previous), previous, entry }, context);
    const result = action.perform(entry.value, body, context.user);
    const done = { isCreated: true, isDeleted: false };
    if (context.isDryRun) return { object: previous, resourceVersion: String(entry.revision), ...done };
    const update = (): Promise<StoredEntry> =>
      registry.store.update(entry.key, result.stored, entry.revision);
    const written = await registry.writer.commit(definition, 'updated', update, context.recheck);
    const object = result.shown(currentForm(definition, written));
    return { object, resourceVersion: String(written.revision), ...done };
  };
  return registry.modify(target, change, false);
}
