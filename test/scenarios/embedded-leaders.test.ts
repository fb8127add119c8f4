/** Leader election on embedded clusters, with shorter times than the defaults. */

import { newEmbeddedWorld } from './embedded-ground.ts';
import { leaderScenarios } from './leaders.ts';

leaderScenarios(newEmbeddedWorld, {
  leaseDurationMs: 4000,
  renewDeadlineMs: 3000,
  retryPeriodMs: 1000,
  awayMs: 0,
  updatesMin: 300,
});
