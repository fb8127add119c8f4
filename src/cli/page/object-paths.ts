/** The patch paths of an object, for completion: every member once, with wildcards for the elements of lists. */

import { isJsonObject, ownValue, type JsonValue } from '../../base/json.ts';

const PATHS_MAX = 500;

/** `metadata.annotations["example.com/owner"]`, `subsets[*].addresses[*].ip`, … in the order of the object. */
export function patchPathsOf(object: JsonValue): string[] {
  const found = new Set<string>();
  collect(object, '', found);
  return [...found];
}

function collect(value: JsonValue, path: string, found: Set<string>): void {
  if (found.size >= PATHS_MAX) return;
  if (path !== '') found.add(path);
  if (Array.isArray(value)) {
    for (const element of value) collect(element, `${path}[*]`, found);
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) collect(ownValue(value, key) ?? null, join(path, key), found);
  }
}

function join(path: string, key: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}
