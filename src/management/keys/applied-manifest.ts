/** The manifest that `kubectl apply` leaves in an annotation: it repeats what was sent, secrets too, for everybody who sees the object. */

import { metadataOf, objectField, text } from '../../api/validation/metadata.ts';
import { isJsonObject, jsonEquals, type JsonObject } from '../../lib/json.ts';
import { withoutSealed } from './write-only-fields.ts';

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Takes the key and the other secrets out of it; changes `object.metadata`. kubectl then finds them to be new at each apply and sends them
 * again, which is no change. A text that is not JSON stays: kubectl never writes one.
 */
export function disarmManifest(object: JsonObject): void {
  const metadata = metadataOf(object);
  const annotations = objectField(metadata, 'annotations');
  const manifest = parsed(text(annotations, ANNOTATION));
  if (!isJsonObject(manifest?.['spec'])) return;
  const { key: _key, ...spec } = objectField(withoutSealed(manifest), 'spec');
  const disarmed = { ...manifest, spec };
  // Written anew, the text of an innocent one could differ by an escape, and kubectl would find it changed for ever.
  if (jsonEquals(manifest, disarmed)) return;
  metadata['annotations'] = { ...annotations, [ANNOTATION]: `${JSON.stringify(disarmed)}\n` };
}

function parsed(manifest: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(manifest);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
