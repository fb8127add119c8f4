/** Runs sigs.k8s.io/yaml, the reader of kubectl, Helm and vCluster, on many texts. */

import { join } from 'node:path';
import { isJsonObject, type JsonValue } from '../../../src/base/json.ts';
import { goProgram } from '../../support/go-program.ts';

export type GoResult = { readonly json: JsonValue } | { readonly error: string };

export const readInGo = goProgram<GoResult>(join(import.meta.dirname, 'go-reader'));

/** Of equal numbers, one is a bigint where the other is a float that is printed with all digits. */
export function sameValue(ours: JsonValue, go: JsonValue): boolean {
  if (typeof ours === 'number' && typeof go !== 'object') return ours === Number(go);
  if (Array.isArray(ours) && Array.isArray(go))
    return ours.length === go.length && ours.every((item, index) => sameValue(item, go[index] ?? null));
  if (!isJsonObject(ours) || !isJsonObject(go)) return ours === go;
  const keys = Object.keys(ours);
  return (
    keys.length === Object.keys(go).length &&
    keys.every((key) => Object.hasOwn(go, key) && sameValue(ours[key] ?? null, go[key] ?? null))
  );
}
