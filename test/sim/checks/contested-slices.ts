/** No Event calls a slice contested that the mirroring controller created: only that controller writes it. */

import { objectKey } from '../../../src/kube/object.ts';
import type { Side } from '../history/operations.ts';
import { CONTROLLER_MANAGER } from '../world/host-controllers.ts';
import type { SimCluster } from '../world/sim-cluster.ts';

export function watchContestedSlices(
  { virtual, host }: Readonly<Record<Side, SimCluster>>,
  violation: (message: string) => void,
): void {
  const generated = new Set<string>();
  host.subscribe(({ plural, object, previous, manager }) => {
    const isCreated = plural === 'endpointslices' && previous === undefined && manager === CONTROLLER_MANAGER;
    if (isCreated) generated.add(objectKey(object));
  });
  virtual.subscribe(({ plural, object, isDeletion }) => {
    if (plural !== 'events' || isDeletion || object['reason'] !== 'Contested') return;
    const slice = /EndpointSlice "([^"]+)"/.exec(object['note'] as string)?.[1] ?? ''; // an Event
    if (generated.has(slice))
      violation(`the Event Contested names ${slice}, which only its controller writes`);
  });
}
