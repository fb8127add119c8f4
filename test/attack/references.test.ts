/** Attacks through references, on embedded clusters. */

import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { referenceAttacks } from './references.ts';

referenceAttacks(newEmbeddedWorld);
