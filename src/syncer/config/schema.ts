/** The sections that the sync reads. Those of vCluster's format are open: only the keys that this program reads are checked. Its own is closed. */

import * as z from 'zod';
import { experimentalSchema, syncSchema } from './schema-sync.ts';
import { namelessSyncerSchema, syncerSchema } from './schema-syncer.ts';

export const syncSections = z.looseObject({
  sync: syncSchema,
  experimental: experimentalSchema,
  endpointSyncer: syncerSchema,
});

/** The same for commands that need no virtual cluster: `endpointSyncer.name` may be absent. */
export const namelessSections = syncSections.extend({ endpointSyncer: namelessSyncerSchema });
