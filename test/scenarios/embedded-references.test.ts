/** References and imports, on embedded clusters. Their faults are the simulation's, and run on real kube-apiservers. */

import { describe } from 'vitest';
import { newEmbeddedWorld } from './embedded-world.ts';
import { referenceScenarios } from './references.ts';

// Most of the time is waiting. Tests that share a world have a namespace each.
describe.concurrent('on embedded clusters', () => {
  referenceScenarios(newEmbeddedWorld);
});
