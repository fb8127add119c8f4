/** References and what they bring along, on embedded clusters. */

import { newEmbeddedWorld } from './embedded-ground.ts';
import { referenceFaultScenarios } from './reference-faults.ts';
import { referenceScenarios } from './references.ts';

referenceScenarios(newEmbeddedWorld);
referenceFaultScenarios(newEmbeddedWorld);
