/** Running it, and what goes wrong meanwhile, on embedded clusters. */

import { newEmbeddedWorld } from './embedded-ground.ts';
import { faultScenarios } from './faults.ts';
import { operationScenarios } from './operation.ts';
import { raceScenarios } from './races.ts';

operationScenarios(newEmbeddedWorld);
raceScenarios(newEmbeddedWorld);
faultScenarios(newEmbeddedWorld);
