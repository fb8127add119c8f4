/** The commands that talk to both clusters, on embedded clusters. The same scenarios run on real kube-apiservers, see `test/e2e/`. */

import { newEmbeddedWorld } from './embedded-world.ts';
import { hostedScenarios } from './hosted.ts';
import { liveCommandScenarios } from './live-commands.ts';
import { liveCommandKindScenarios } from './live-commands-kinds.ts';

liveCommandScenarios(newEmbeddedWorld);
hostedScenarios(newEmbeddedWorld);
liveCommandKindScenarios(newEmbeddedWorld);
