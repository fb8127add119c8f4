/** Attacks through references, on embedded clusters: on a daemon, and on a member of a fleet. */

import { describe } from 'vitest';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { newFleetMemberWorld } from '../scenarios/fleet-member-world.ts';
import { configuredSecretAttack, referenceAttacks } from './references.ts';

referenceAttacks(newEmbeddedWorld);
configuredSecretAttack(newEmbeddedWorld);

describe('in a fleet', () => {
  referenceAttacks(newFleetMemberWorld);
});
