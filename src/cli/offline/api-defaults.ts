/** What an API server makes of objects that are written in a rehearsal. */

import { allowEverything } from '../../apiserver/request/request-info.ts';
import { builtInKinds } from '../../embedded-cluster/kinds/built-in-kinds.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import { asJson, cloneObject, type KubeObject } from '../../kube/object.ts';

/** Objects of kinds that are not built in are unchanged. */
export function apiDefaults(): (plural: string, object: KubeObject) => KubeObject {
  const kinds = new Map(builtInKinds(allowEverything).all.map((one) => [qualifiedPlural(one), one]));
  return (plural, object) => {
    const kind = kinds.get(plural);
    if (kind === undefined) return object;
    const copy = cloneObject(object);
    kind.applyDefaults(asJson(copy));
    return copy;
  };
}
