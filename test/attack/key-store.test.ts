/** Attacks on the Secrets of the key store, on embedded clusters. */

import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { keyStoreAttacks } from './key-store.ts';

keyStoreAttacks(newEmbeddedWorld);
