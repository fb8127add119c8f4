/** Syncing of each kind, on embedded clusters. The same scenarios run on real kube-apiservers, see `test/e2e/`. */

import { describe } from 'vitest';
import { newEmbeddedWorld } from './embedded-world.ts';
import { endpointSliceScenarios } from './endpoint-slices.ts';
import { handOverScenarios, ownerScenarios } from './hand-over.ts';
import { formerPolicyScenarios } from './former-policies.ts';
import { hostServiceScenarios } from './host-services.ts';
import { namespaceScenarios } from './namespaces.ts';
import { onHostDeleteScenarios } from './ownership.ts';
import { patchScenarios } from './patches.ts';
import { plainDaemonScenarios } from './plain-daemon.ts';
import { otherClusterScenarios, restartScenarios } from './restart.ts';
import { requireServiceScenarios, selectionScenarios } from './service-gate.ts';
import { serviceScenarios } from './services.ts';
import { sliceLifecycleScenarios } from './slice-lifecycles.ts';
import { upgradeScenarios } from './upgrade.ts';

// Most of the time is waiting. Tests that share a world have a namespace each.
describe.concurrent('on embedded clusters', () => {
  plainDaemonScenarios(newEmbeddedWorld);
  requireServiceScenarios(newEmbeddedWorld);
  selectionScenarios(newEmbeddedWorld);
  onHostDeleteScenarios(newEmbeddedWorld);
  restartScenarios(newEmbeddedWorld);
  otherClusterScenarios(newEmbeddedWorld);
  namespaceScenarios(newEmbeddedWorld);
  hostServiceScenarios(newEmbeddedWorld);
  patchScenarios(newEmbeddedWorld);
  endpointSliceScenarios(newEmbeddedWorld);
  serviceScenarios(newEmbeddedWorld);
  handOverScenarios(newEmbeddedWorld);
  ownerScenarios(newEmbeddedWorld);
  upgradeScenarios(newEmbeddedWorld);
  formerPolicyScenarios(newEmbeddedWorld);
});

sliceLifecycleScenarios(newEmbeddedWorld);
