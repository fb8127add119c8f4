/** References and imports, on real kube-apiservers; the custom resource is a real CustomResourceDefinition. */

import { keyStoreAttacks } from '../attack/key-store.ts';
import { configuredSecretAttack, referenceAttacks } from '../attack/references.ts';
import { referenceFaultScenarios } from '../scenarios/reference-faults.ts';
import { referenceScenarios } from '../scenarios/references.ts';
import { newRealWorld } from './real-world.ts';

referenceScenarios(newRealWorld);
referenceFaultScenarios(newRealWorld);
referenceAttacks(newRealWorld);
configuredSecretAttack(newRealWorld);
keyStoreAttacks(newRealWorld);
