/** Running it, and what goes wrong meanwhile, on embedded clusters. */

import { dryRunScenarios } from './dry-run.ts';
import { newEmbeddedWorld } from './embedded-ground.ts';
import { faultScenarios } from './faults.ts';
import { operationScenarios } from './operation.ts';
import { raceScenarios } from './races.ts';
import { recordedBeforeScenarios } from './recorded-before.ts';

operationScenarios(newEmbeddedWorld);
raceScenarios(newEmbeddedWorld);
recordedBeforeScenarios(newEmbeddedWorld);
faultScenarios(newEmbeddedWorld);
dryRunScenarios(newEmbeddedWorld);
