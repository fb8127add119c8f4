/** The commands that talk to both clusters, on real kube-apiservers. */

import { liveCommandScenarios } from '../scenarios/live-commands.ts';
import { liveCommandKindScenarios } from '../scenarios/live-commands-kinds.ts';
import { newRealWorld } from './real-world.ts';

liveCommandScenarios(newRealWorld);
liveCommandKindScenarios(newRealWorld);
