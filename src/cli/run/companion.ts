/** The key and token API beside the sync, loaded only where it is served. */

import type { DaemonOptions } from '../../syncer/daemon.ts';

/** Nothing where the API is not enabled, nor in a dry run, which would write into its store. */
export function accessKeysCompanion(options: DaemonOptions): Pick<DaemonOptions, 'startCompanion'> {
  const { config, isDryRun, logger } = options;
  if (!config.management.enabled) return {};
  if (isDryRun) {
    logger.info({}, 'the key and token API is not served by a dry run');
    return {};
  }
  return {
    async startCompanion(metrics) {
      const { startManagementApi } = await import('../../access-keys/management-api.ts');
      return startManagementApi({ ...options, config: config.management, metrics });
    },
  };
}
