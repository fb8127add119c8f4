/** Hints for the client that writes a key: deprecated fields with what replaces them, and a secret that the client does not show. */

import { metadataOf, objectField, objectList, text } from '../../../apiserver/validation/metadata.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { scopeWarnings } from '../../authorization/scope/scope-warnings.ts';
import { APPLIED_MANIFEST } from '../stored/last-applied.ts';

export function keyWarnings(key: JsonObject, isCreated: boolean): readonly string[] {
  const spec = objectField(key, 'spec');
  const warnings: string[] = [];
  if (isCreated && text(spec, 'key') !== '' && isApplied(key)) {
    const name = text(metadataOf(key), 'name');
    warnings.push(
      `the secret of the access key was shown once, in this response, which kubectl apply does not print: endpoint-syncer keys rotate ${name} issues another`,
    );
  }
  if (text(spec, 'parent') !== '' && isSetByClient(key, 'f:parent'))
    warnings.push('spec.parent is deprecated: use spec.identity');
  if (isJsonObject(spec['oidcLogin'])) warnings.push('spec.oidcLogin is deprecated: use spec.identity');
  return [...warnings, ...scopeWarnings(spec['scope'], 'spec.scope')];
}

/** Not by the server, as an inherited parent is. */
function isSetByClient(key: JsonObject, field: string): boolean {
  return objectList(metadataOf(key), 'managedFields').some((entry) => {
    const fields = objectField(objectField(entry, 'fieldsV1'), 'f:spec');
    return fields[field] !== undefined;
  });
}

/** By `kubectl apply`, on either side. */
function isApplied(key: JsonObject): boolean {
  const metadata = metadataOf(key);
  if (text(objectField(metadata, 'annotations'), APPLIED_MANIFEST) !== '') return true;
  return objectList(metadata, 'managedFields').some((entry) => entry['operation'] === 'Apply');
}
