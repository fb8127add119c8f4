/** Running it, and what goes wrong meanwhile, on embedded clusters. */

import { newEmbeddedWorld } from './embedded-ground.ts';
import { faultScenarios } from './faults.ts';
import { operationScenarios } from './operation.ts';

operationScenarios(newEmbeddedWorld);
faultScenarios(newEmbeddedWorld);
