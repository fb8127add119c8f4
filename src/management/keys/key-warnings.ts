/** Hints for whoever writes a key: deprecated fields with what replaces them, and those of its scope. */

import { objectField, text } from '../../api/validation/metadata.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import { scopeWarnings } from '../access/scope-warnings.ts';

export function keyWarnings(key: JsonObject): readonly string[] {
  const spec = objectField(key, 'spec');
  const warnings: string[] = [];
  if (text(spec, 'parent') !== '') warnings.push('spec.parent is deprecated: use spec.identity');
  if (isJsonObject(spec['oidcLogin'])) warnings.push('spec.oidcLogin is deprecated: use spec.identity');
  return [...warnings, ...scopeWarnings(spec['scope'], 'spec.scope')];
}
