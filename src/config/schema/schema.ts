/**
 * The schema of a configuration file. Sections of vCluster's format are open: only the keys that this program reads are
 * checked. Sections of our own are closed: an unknown key is an error.
 */

import * as z from 'zod';
import { managementSchema } from './schema-management.ts';
import { experimentalSchema, syncSchema } from './schema-sync.ts';
import { namelessSyncerSchema, syncerSchema } from './schema-syncer.ts';

export const configSchema = z.looseObject({
  sync: syncSchema,
  experimental: experimentalSchema,
  endpointSyncer: syncerSchema,
  managementApi: managementSchema,
});

/** The same for commands that need no virtual cluster: `endpointSyncer.name` may be absent. */
export const namelessConfigSchema = configSchema.extend({ endpointSyncer: namelessSyncerSchema });

/** A valid file as the schema parses it: defaults filled in, durations in ms, sizes in bytes. */
export type ParsedConfig = z.output<typeof configSchema>;
