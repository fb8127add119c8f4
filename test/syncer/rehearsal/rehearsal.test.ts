/** What a rehearsal says beyond what it writes; that it writes what the daemon writes is compared in the simulation. */

import { expect, test } from 'vitest';
import { object, rehearsed } from '../memory-world.ts';

test('a defect of the engine is an error, not an object that seems not to be synced', async () => {
  const broken = { managedFields: null } as object;
  await expect(rehearsed({ virtual: { Endpoints: [object(broken)] } })).rejects.toThrow(
    /^the sync cannot be predicted: list-watch interrupted: SinkError: storing objects in the cache failed\n/u,
  );
});
