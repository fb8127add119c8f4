/** Helpers of this folder: `subsets` between the two sides, as the kind translates them. */

import type { KubeObject } from '../../../src/kube/object.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { memberOf } from '../../../src/syncer/translate/content.ts';
import type { NameTranslator } from '../../../src/syncer/translate/types.ts';

function withSubsets(subsets: JsonValue, namespace: string): KubeObject {
  return { metadata: { name: 'web', namespace }, subsets };
}

export function subsetsToHost(subsets: JsonValue, namespace: string, names: NameTranslator): JsonValue {
  const members = endpointsContent.toHost(withSubsets(subsets, namespace), { names, host: undefined });
  return members['subsets'] ?? null;
}

export function subsetsToVirtual(
  subsets: JsonValue,
  namespace: string,
  names: NameTranslator,
  virtualSubsets?: JsonValue,
): JsonValue {
  const original = virtualSubsets === undefined ? undefined : withSubsets(virtualSubsets, namespace);
  const host = withSubsets(subsets, namespace);
  return memberOf(
    withSubsets(
      endpointsContent.toVirtual(host, { names, namespace, original })['subsets'] ?? null,
      namespace,
    ),
    'subsets',
  );
}
