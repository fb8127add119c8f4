/** What is synced, on embedded clusters. The same scenarios run on real kube-apiservers, see `test/e2e/`. */

import { basicScenarios } from './basics.ts';
import { newEmbeddedWorld } from './embedded-ground.ts';
import { hostileScenarios } from './hostile.ts';
import { metadataScenarios } from './metadata.ts';
import { namespaceScenarios } from './namespaces.ts';
import { ownershipScenarios } from './ownership.ts';
import { patchScenarios } from './patches.ts';
import { restartScenarios } from './restart.ts';
import { serviceGateScenarios } from './service-gate.ts';

basicScenarios(newEmbeddedWorld);
metadataScenarios(newEmbeddedWorld);
restartScenarios(newEmbeddedWorld);
serviceGateScenarios(newEmbeddedWorld);
ownershipScenarios(newEmbeddedWorld);
namespaceScenarios(newEmbeddedWorld);
patchScenarios(newEmbeddedWorld);
hostileScenarios(newEmbeddedWorld);
