/** Operation of the daemon, on embedded clusters. Races and faults are the simulation's, and run on real kube-apiservers, see `test/e2e/`. */

import { describe } from 'vitest';
import { admissionScenarios } from './admission.ts';
import { dryRunScenarios } from './dry-run.ts';
import { gaugeScenarios } from './gauges.ts';
import { newEmbeddedWorld } from './embedded-world.ts';
import { operationScenarios } from './operation.ts';
import { reloadScenarios } from './reload.ts';
import { rotationScenarios } from './rotation.ts';
import { otherSyncerScenarios } from './other-syncers.ts';

// Most of the time is waiting. Tests with the same daemon run one after another.
describe.concurrent('on embedded clusters', () => {
  gaugeScenarios(newEmbeddedWorld);
  operationScenarios(newEmbeddedWorld);
  reloadScenarios(newEmbeddedWorld);
  otherSyncerScenarios(newEmbeddedWorld);
  admissionScenarios(newEmbeddedWorld);
  dryRunScenarios(newEmbeddedWorld);
  rotationScenarios(newEmbeddedWorld);
});
