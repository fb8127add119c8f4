/** Every scenario on real kube-apiservers, the host with its own controllers. */

import { dryRunScenarios } from '../scenarios/dry-run.ts';
import { endpointSliceScenarios } from '../scenarios/endpoint-slices.ts';
import { faultScenarios } from '../scenarios/faults.ts';
import { handOverScenarios } from '../scenarios/hand-over.ts';
import { namespaceScenarios } from '../scenarios/namespaces.ts';
import { operationScenarios } from '../scenarios/operation.ts';
import { onHostDeleteScenarios } from '../scenarios/ownership.ts';
import { patchScenarios } from '../scenarios/patches.ts';
import { plainDaemonScenarios } from '../scenarios/plain-daemon.ts';
import { raceScenarios } from '../scenarios/races.ts';
import { recordedBeforeScenarios } from '../scenarios/recorded-before.ts';
import { restartScenarios } from '../scenarios/restart.ts';
import { requireServiceScenarios } from '../scenarios/service-gate.ts';
import { serviceScenarios } from '../scenarios/services.ts';
import { sliceLifecycleScenarios } from '../scenarios/slice-lifecycles.ts';
import { hostControllerScenarios } from './host-controllers.ts';
import { newRealWorld } from './real-world.ts';
import { upgradeScenarios } from '../scenarios/upgrade.ts';

plainDaemonScenarios(newRealWorld);
restartScenarios(newRealWorld);
requireServiceScenarios(newRealWorld);
onHostDeleteScenarios(newRealWorld);
namespaceScenarios(newRealWorld);
patchScenarios(newRealWorld);
endpointSliceScenarios(newRealWorld);
operationScenarios(newRealWorld);
raceScenarios(newRealWorld);
recordedBeforeScenarios(newRealWorld);
faultScenarios(newRealWorld);
hostControllerScenarios(newRealWorld);
dryRunScenarios(newRealWorld);
serviceScenarios(newRealWorld);
handOverScenarios(newRealWorld);
upgradeScenarios(newRealWorld);
sliceLifecycleScenarios(newRealWorld);
