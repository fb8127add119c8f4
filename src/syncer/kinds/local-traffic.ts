/** What the tenant is told of traffic policies that keep traffic on the node of an endpoint: the names of nodes are those of the virtual cluster. Pure. */

import { objectField, type JsonValue } from '../../base/json.ts';
import { asJson, objectKey, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import { EXTERNAL_NAME, isExternallyAccessible, typeOf } from '../../kube/service-rules.ts';
import type { RecordedEvent } from '../../kube/types.ts';

/** A virtual Service, where the names of nodes are those of the virtual cluster, and no patch takes care of them. */
export type LocalServiceOf = (service: ObjectKey) => KubeObject | undefined;

/** Names in the note. */
const SHOWN_MAX = 3;

/** `nodeNames`: of each endpoint of an object behind the Service; undefined: it has none. `path`: where that object has them. */
export function localTrafficNotice(
  service: KubeObject | undefined,
  nodeNames: readonly (JsonValue | undefined)[],
  path: string,
): RecordedEvent | undefined {
  const [policy] = service === undefined ? [] : localPolicies(service);
  if (service === undefined || policy === undefined || nodeNames.length === 0) return undefined;
  const names = [...new Set(nodeNames)].filter((name) => typeof name === 'string' && name !== '');
  const shown = names.slice(0, SHOWN_MAX).map((name) => JSON.stringify(name));
  const more = names.length > SHOWN_MAX ? `, and ${names.length - SHOWN_MAX} others` : '';
  const what =
    names.length === 0
      ? `no address has one, so no node sends it anywhere`
      : `here they are ${shown.join(', ')}${more}, which are nodes of this cluster; if the host has none of these names, no node sends it anywhere`;
  const note =
    `Service "${objectKey(service)}" has ${policy}: Local, so each node of the host sends its traffic only to the addresses with its own name in ${path}: ${what}. ` +
    `Patch ${path} to names of nodes of the host, or spec.${policy} of the copy of the Service to Cluster.`;
  return { type: 'Warning', reason: 'LocalTrafficPolicy', note };
}

function localPolicies(service: KubeObject): readonly string[] {
  const spec = objectField(asJson(service), 'spec');
  const isLocal = (field: string): boolean => spec[field] === 'Local';
  if (typeOf(spec) === EXTERNAL_NAME) return [];
  return [
    ...(isExternallyAccessible(spec) && isLocal('externalTrafficPolicy') ? ['externalTrafficPolicy'] : []),
    ...(isLocal('internalTrafficPolicy') ? ['internalTrafficPolicy'] : []),
  ];
}
