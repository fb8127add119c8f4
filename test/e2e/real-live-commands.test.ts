/** The commands that talk to both clusters, on real kube-apiservers. */

import { hostedScenarios } from '../scenarios/hosted.ts';
import { liveCommandScenarios } from '../scenarios/live-commands.ts';
import { liveCommandKindScenarios } from '../scenarios/live-commands-kinds.ts';
import { newRealWorld } from './real-world.ts';

liveCommandScenarios(newRealWorld);
hostedScenarios(newRealWorld);
liveCommandKindScenarios(newRealWorld);
