/** What a rehearsal says beyond what it writes; that it writes what the daemon writes is compared in the simulation. */

import { expect, test } from 'vitest';
import { object, rehearsed } from './memory-world.ts';

test('an object of the virtual cluster is copied', async () => {
  const { changes, objection } = await rehearsed({ virtual: { Endpoints: [object()] } });
  expect(changes.map(({ cluster, after }) => [cluster, after?.metadata.name])).toContainEqual([
    'host',
    'web-x-shop-x-vc',
  ]);
  expect(objection).toBeUndefined();
});

test('a defect of the engine is an error, not an object that seems not to be synced', async () => {
  const broken = { managedFields: null } as object;
  await expect(rehearsed({ virtual: { Endpoints: [object(broken)] } })).rejects.toThrow(
    /^the sync cannot be predicted: list-watch interrupted: SinkError: storing objects in the cache failed\n/u,
  );
});
