/** Hints for whoever writes a scope: deprecated fields with what replaces them, and a scope that cannot be meant. */

import { isJsonObject } from '../../../base/json.ts';

/** `path`: the field that holds the scope. Undefined: there is none. */
export function scopeWarnings(scope: unknown, path: string): readonly string[] {
  if (!isJsonObject(scope)) return [];
  const warnings: string[] = [];
  if (Array.isArray(scope['rules']) && scope['rules'].length > 0) {
    warnings.push(
      `${path}.rules is deprecated: use ${path}.projects, ${path}.spaces and ${path}.virtualClusters`,
    );
  }
  if (scope['allowPlatformCli'] === true) {
    warnings.push(
      `${path}.allowPlatformCli is deprecated: use an entry of ${path}.roles whose role is platformCLI`,
    );
  }
  const isEmpty = Object.values(scope).every(
    (value) => value === false || (Array.isArray(value) && value.length === 0),
  );
  if (isEmpty) warnings.push(`${path} has no entries and allows nothing: leave it out for no restriction`);
  return warnings;
}
