/** A start on the copies of an earlier release finds nothing to change: an upgrade writes nothing. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { service } from './objects.ts';
import { type NewWorld, type World } from './world.ts';

const RELEASES = join(import.meta.dirname, '..', 'golden', 'releases');
/** The name of the virtual cluster in the recorded files. */
const VCLUSTER = 'released';

interface Release {
  readonly config: JsonObject;
  readonly virtual: KubeObject;
  readonly copy: KubeObject;
}

export function upgradeScenarios(newWorld: NewWorld): void {
  describe('an upgrade', () => {
    test.for(readdirSync(RELEASES))('from the release %s writes nothing', async (file, { expect }) => {
      await using world = await newWorld({ vcluster: VCLUSTER });
      const { config, copy } = await createRelease(world, file);
      const log = await world.log('host');
      const virtualLog = await world.log('virtual');
      const daemon = await world.startSync({ config });
      await world.settle(daemon);
      expect([world.writesIn(log), world.writesIn(virtualLog)]).toEqual([[], []]);
      expect(await world.host.get('Endpoints', world.hostNamespace, copy.metadata.name)).toEqual(copy);
    });
  });
}

/** Both objects as the release left them, and the Services that keep the controllers of a real host away. */
async function createRelease(world: World, file: string): Promise<Release> {
  const text = readFileSync(join(RELEASES, file), 'utf8').replaceAll('HOST_NAMESPACE', world.hostNamespace);
  const { config, virtual, copy } = parse(text) as Release; // our own file
  const key = `${virtual.metadata.namespace}/${virtual.metadata.name}`;
  await world.virtual.create('Service', service(key));
  await world.host.create('Service', service(world.hostKey(key).join('/')));
  const { metadata } = await world.virtual.create('Endpoints', virtual);
  const annotations = { ...copy.metadata.annotations, 'vcluster.loft.sh/object-uid': metadata.uid ?? '' };
  const created = await world.host.create('Endpoints', {
    ...copy,
    metadata: { ...copy.metadata, annotations },
  });
  return { config, virtual, copy: created };
}
