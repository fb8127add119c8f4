/** Every scenario on real kube-apiservers, the host with its own controllers. */

import { basicScenarios } from '../scenarios/basics.ts';
import { faultScenarios } from '../scenarios/faults.ts';
import { hostileScenarios } from '../scenarios/hostile.ts';
import { metadataScenarios } from '../scenarios/metadata.ts';
import { namespaceScenarios } from '../scenarios/namespaces.ts';
import { operationScenarios } from '../scenarios/operation.ts';
import { ownershipScenarios } from '../scenarios/ownership.ts';
import { patchScenarios } from '../scenarios/patches.ts';
import { raceScenarios } from '../scenarios/races.ts';
import { restartScenarios } from '../scenarios/restart.ts';
import { serviceGateScenarios } from '../scenarios/service-gate.ts';
import { hostControllerScenarios } from './host-controllers.ts';
import { newRealWorld } from './real-ground.ts';

basicScenarios(newRealWorld);
metadataScenarios(newRealWorld);
restartScenarios(newRealWorld);
serviceGateScenarios(newRealWorld);
ownershipScenarios(newRealWorld);
namespaceScenarios(newRealWorld);
patchScenarios(newRealWorld);
operationScenarios(newRealWorld);
hostileScenarios(newRealWorld);
raceScenarios(newRealWorld);
faultScenarios(newRealWorld);
hostControllerScenarios(newRealWorld);
