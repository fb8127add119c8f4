/** Fleets on embedded clusters: one host, several virtual clusters. */

import { describe } from 'vitest';
import { newEmbeddedFleet } from './fleet-world.ts';
import { fleetScenarios } from './fleet.ts';

// Most of the time is waiting.
describe.concurrent('on embedded clusters', () => {
  fleetScenarios(newEmbeddedFleet);
});
