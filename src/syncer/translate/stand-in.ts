/** A second copy under another name, with the same addresses for the same Service: readers use it while the copy itself is deleted and created again.
 * Pure. */

import type { KubeObject, NamespacedName } from '../../kube/object.ts';
import { OBJECT_HOST_NAME } from './bookkeeping.ts';

/** Its bookkeeping and record make it a stray of the copy's key, so that one that a daemon leaves is deleted by the next. */
export function standInFor(copy: KubeObject): KubeObject {
  const name = standInName(copy.metadata);
  const { namespace = '', labels = {}, ownerReferences = [], annotations } = copy.metadata;
  // Without finalizers, which would keep it.
  const metadata = {
    name,
    namespace,
    labels,
    ownerReferences,
    annotations: { ...annotations, [OBJECT_HOST_NAME]: name },
  };
  return { ...copy, metadata };
}

/** `target`: the place of the copy. */
export function isStandIn({ metadata }: KubeObject, target: NamespacedName | undefined): boolean {
  return (
    target !== undefined && metadata.namespace === target.namespace && metadata.name === standInName(target)
  );
}

/** Copies of single-namespace mode end with the name of the virtual cluster, so none has such a name. Another that has it keeps it: then nothing stands in. */
function standInName({ name }: { readonly name: string }): string {
  return `${name}-stand-in`;
}
