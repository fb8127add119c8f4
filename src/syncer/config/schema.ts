/** The sections that the sync reads. Those of vCluster's format are open: only the keys that this program reads are checked. Its own is closed. */

import * as z from 'zod';
import { experimentalSchema, syncSchema } from './schema-sync.ts';
import { ONE_NAMESPACE_MODE } from './rules.ts';
import { namelessSyncerSchema, syncerSchema, syncFields } from './schema-syncer.ts';

export const syncSections = z.looseObject({
  sync: syncSchema,
  experimental: experimentalSchema,
  endpointSyncer: syncerSchema,
});

/** What JSON Schema can say of the rules between these sections. */
export const SYNC_RULES_SCHEMA = ONE_NAMESPACE_MODE.schema;

/** The same for commands that need no virtual cluster: `endpointSyncer.name` may be absent. */
export const namelessSections = syncSections.extend({ endpointSyncer: namelessSyncerSchema });

/** The fields that a member of a fleet gets from `endpointSyncer.defaults`, and may have in its ConfigMap. */
export const SYNC_FIELDS: readonly string[] = Object.keys(syncFields);
