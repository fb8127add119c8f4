/** Shutdown while an API server hangs, on embedded clusters. */

import { describe } from 'vitest';
import { newEmbeddedWorld } from './embedded-world.ts';
import { shutdownScenarios } from './shutdown.ts';

// Each test waits for the drain of its own daemon.
describe.concurrent('on embedded clusters', () => {
  shutdownScenarios(newEmbeddedWorld);
});
