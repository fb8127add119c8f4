/** The view of the two clusters that the check for lost edits uses. */

import { objectKey, type KubeObject } from '../../../src/kube/object.ts';
import type { SyncedPlural } from '../history/operations.ts';
import { hostKeyOf, VIRTUAL_NAMES } from '../world/names.ts';
import { idOf, type EditWorld, type HostPlace } from './edits.ts';
import { differences, isOptedOut, wantsCopy, type World } from './naive-model.ts';

export function editWorld(world: World): EditWorld {
  const placeOf = (id: string) => {
    const [plural = '', index = ''] = id.split(' ');
    const name = VIRTUAL_NAMES[Number(index)];
    if (name === undefined) throw new Error(`there is no object ${id}`);
    return { plural: plural as SyncedPlural, name }; // as `idOf` wrote it
  };
  const virtual = (id: string): KubeObject | undefined => {
    const { plural, name } = placeOf(id);
    return world.virtual.get(plural, `${name.namespace}/${name.name}`);
  };
  const host = (id: string): KubeObject | undefined => {
    const { plural, name } = placeOf(id);
    return world.host.get(plural, hostKeyOf(name, world.settings));
  };
  const objectsAt = ({ plural, key }: HostPlace): readonly string[] =>
    [...VIRTUAL_NAMES.entries()].flatMap(([object, name]) =>
      hostKeyOf(name, world.settings) === key ? [idOf({ plural, object })] : [],
    );
  return {
    isPatched: world.settings.isPatched,
    isInterrupted: world.isInterrupted,
    rivals(id) {
      const { plural, name } = placeOf(id);
      return objectsAt({ plural, key: hostKeyOf(name, world.settings) });
    },
    objectsAt,
    virtual,
    host,
    isInStep(id) {
      const [own, copy] = [virtual(id), host(id)];
      return own !== undefined && copy !== undefined && differences(copy, own, world).length === 0;
    },
    isWholePair(id) {
      const [own, copy] = [virtual(id), host(id)];
      if (own === undefined || copy === undefined || !world.isOurs(copy)) return false;
      // Nothing flows back while either of them is being deleted.
      if ([own, copy].some(({ metadata }) => metadata.deletionTimestamp !== undefined)) return false;
      const { annotations = {}, labels = {} } = copy.metadata;
      return (
        wantsCopy(placeOf(id).plural, own, world) &&
        !isOptedOut(copy) &&
        annotations['vcluster.loft.sh/object-uid'] === own.metadata.uid &&
        annotations['vcluster.loft.sh/object-namespace'] === own.metadata.namespace &&
        `${annotations['vcluster.loft.sh/object-namespace']}/${annotations['vcluster.loft.sh/object-name']}` ===
          objectKey(own) &&
        annotations['endpoint-syncer/last-synced']?.startsWith('{') === true &&
        labels['vcluster.loft.sh/managed-by'] !== undefined
      );
    },
  };
}
