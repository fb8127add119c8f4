/** Running it, and what goes wrong meanwhile, on embedded clusters. */

import { describe } from 'vitest';
import { dryRunScenarios } from './dry-run.ts';
import { newEmbeddedWorld } from './embedded-ground.ts';
import { faultScenarios } from './faults.ts';
import { operationScenarios } from './operation.ts';
import { raceScenarios } from './races.ts';
import { recordedBeforeScenarios } from './recorded-before.ts';

// Most of the time is waiting. Tests with the same daemon run one after another.
describe.concurrent('on embedded clusters', () => {
  operationScenarios(newEmbeddedWorld);
  raceScenarios(newEmbeddedWorld);
  recordedBeforeScenarios(newEmbeddedWorld);
  faultScenarios(newEmbeddedWorld);
  dryRunScenarios(newEmbeddedWorld);
});
