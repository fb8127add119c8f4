/** Warnings about a scope: deprecated fields with their replacement, and a scope that allows nothing. */

import { isJsonObject } from '../../../base/json.ts';

/** `path`: the field of the scope. */
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
  if (isEmpty) warnings.push(`${path} has no entries and allows nothing: omit it for no restriction`);
  return warnings;
}
