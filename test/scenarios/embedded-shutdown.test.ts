/** Ends that an API server holds up, on embedded clusters. */

import { newEmbeddedWorld } from './embedded-ground.ts';
import { shutdownScenarios } from './shutdown.ts';

shutdownScenarios(newEmbeddedWorld);
