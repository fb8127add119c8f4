/** Serves the key and token API in the process of the syncer. Its modules are loaded only when it is enabled. */

import type { DaemonOptions } from '../../syncer/daemon.ts';

/** Empty if the API is not enabled, and in a dry run, because the API would write to its store. */
export function accessKeysCompanion(options: DaemonOptions): Pick<DaemonOptions, 'startCompanion'> {
  const { config, isDryRun, logger } = options;
  if (!config.management.enabled) return {};
  if (isDryRun) {
    logger.info({}, 'the key and token API is not served by a dry run');
    return {};
  }
  return {
    async startCompanion(metrics, stopping) {
      const { startManagementApi } = await import('../../access-keys/management-api.ts');
      const signal = AbortSignal.any([options.signal, stopping]);
      return startManagementApi({ ...options, config: config.management, metrics, signal });
    },
  };
}
