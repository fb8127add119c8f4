/** Leader election on real kube-apiservers, with the default times; and a shutdown while an API server hangs. */

import { leaderScenarios } from '../scenarios/leaders.ts';
import { shutdownScenarios } from '../scenarios/shutdown.ts';
import { newRealWorld } from './real-world.ts';

leaderScenarios(newRealWorld, {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2000,
  awayMs: 60_000,
  updatesMin: 1000,
});
shutdownScenarios(newRealWorld);
