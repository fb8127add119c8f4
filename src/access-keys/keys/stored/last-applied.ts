/** The manifest that `kubectl apply` leaves in an annotation: it repeats what was sent, secrets included, to every reader of the object. */

import { metadataOf, objectField, text } from '../../../apiserver/validation/metadata.ts';
import { isJsonObject, jsonEquals, type JsonObject } from '../../../base/json.ts';
import { withoutSealed } from './write-only-fields.ts';

export const APPLIED_MANIFEST = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Removes the key and the other secrets from it; changes `object.metadata`. kubectl then sends them again at each apply, which is no change.
 * A text that is not JSON stays: kubectl never writes one.
 */
export function redactLastApplied(object: JsonObject): void {
  const metadata = metadataOf(object);
  const annotations = objectField(metadata, 'annotations');
  const manifest = parsed(text(annotations, APPLIED_MANIFEST));
  if (!isJsonObject(manifest?.['spec'])) return;
  const { key: _key, ...spec } = objectField(withoutSealed(manifest), 'spec');
  const redacted = { ...manifest, spec };
  // Serialized again, a manifest without secrets could differ by an escape, and kubectl would report a change at every apply.
  if (jsonEquals(manifest, redacted)) return;
  metadata['annotations'] = { ...annotations, [APPLIED_MANIFEST]: `${JSON.stringify(redacted)}\n` };
}

function parsed(manifest: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(manifest);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
