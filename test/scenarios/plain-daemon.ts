/** Scenarios with the default configuration. They share one daemon in one world: none stops it, and each uses its own namespaces. */

import { describe } from 'vitest';
import { basicScenarios } from './basics.ts';
import { hostileScenarios } from './hostile.ts';
import { metadataScenarios } from './metadata.ts';
import { ownershipScenarios } from './ownership.ts';
import { serviceGateScenarios } from './service-gate.ts';
import { sharedProcess } from './shared-world.ts';
import type { NewWorld } from './world.ts';

export function plainDaemonScenarios(newWorld: NewWorld): void {
  describe('with a plain configuration', { concurrent: false }, () => {
    const shared = sharedProcess(newWorld);
    basicScenarios(shared);
    metadataScenarios(shared);
    serviceGateScenarios(shared);
    ownershipScenarios(shared);
    hostileScenarios(shared);
  });
}
