/** Attacks on the Secrets of the key store, on embedded clusters: on a daemon, and on a member of a fleet whose keys are in its namespace. */

import { describe } from 'vitest';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { newFleetMemberWorld } from '../scenarios/fleet-member-world.ts';
import { keyStoreAttacks } from './key-store.ts';

keyStoreAttacks(newEmbeddedWorld);

describe('in a fleet', () => {
  keyStoreAttacks(newFleetMemberWorld);
});
