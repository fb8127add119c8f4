/** Secrets in a diff, as kubectl shows them: whether a value changes, never the value. */

import { isJsonObject, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';

type Sides = readonly [before: KubeObject | undefined, after: KubeObject | undefined];

/** Contains the object as kubectl applied it, including its data. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MASK = '***';

export function maskSecrets(before: KubeObject | undefined, after: KubeObject | undefined): Sides {
  return [
    before && masked(before, after, `${MASK} (before)`),
    after && masked(after, before, `${MASK} (after)`),
  ];
}

/** Equal values get the same mask on both sides; `changed` replaces those that differ. */
function masked(object: KubeObject, other: KubeObject | undefined, changed: string): KubeObject {
  const result: KubeObject = { ...object };
  for (const member of ['data', 'stringData']) {
    const values = mapOf(object[member]);
    if (values !== undefined) result[member] = maskedMap(values, mapOf(other?.[member]), changed);
  }
  const { annotations } = object.metadata;
  if (annotations?.[LAST_APPLIED] !== undefined)
    result.metadata = { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: MASK } };
  return result;
}

function maskedMap(values: JsonObject, others: JsonObject | undefined, changed: string): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(values)) {
    const isChanged = others !== undefined && Object.hasOwn(others, key) && others[key] !== value;
    setOwn(result, key, isChanged ? changed : MASK);
  }
  return result;
}

function mapOf(value: KubeObject[string]): JsonObject | undefined {
  const json = value as JsonValue | undefined; // data is below metadata
  return isJsonObject(json) ? json : undefined;
}
