/** The annotation of `kubectl apply` with the applied manifest, which would show secrets to every reader of the object. */

import { metadataOf, objectField, text } from '../../../apiserver/metadata.ts';
import { isJsonObject, jsonEquals, type JsonObject } from '../../../base/json.ts';
import { withoutSealed } from './write-only-fields.ts';

export const APPLIED_MANIFEST = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Removes the key and the other secrets from it; changes `object.metadata`. kubectl sends them again with each apply, which is a no-op.
 * A text that is not JSON is kept: kubectl never writes one.
 */
export function redactLastApplied(object: JsonObject): void {
  const metadata = metadataOf(object);
  const annotations = objectField(metadata, 'annotations');
  const manifest = parsed(text(annotations, APPLIED_MANIFEST));
  if (!isJsonObject(manifest?.['spec'])) return;
  const { key: _key, ...spec } = objectField(withoutSealed(manifest), 'spec');
  const redacted = { ...manifest, spec };
  // A manifest without secrets is kept as it is: serialized again it could differ by an escape, and kubectl would report a change.
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
