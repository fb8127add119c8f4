/** Attacks through references, on embedded clusters. */

import { newEmbeddedWorld } from '../scenarios/embedded-ground.ts';
import { referenceAttacks } from './references.ts';

referenceAttacks(newEmbeddedWorld);
