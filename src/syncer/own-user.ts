/** Logs as which user an API server knows this program, and warns of an administrator. */

import type { Logger } from '../base/logger.ts';
import { missingRights, ownUserName } from '../kube/access-review.ts';
import type { WatchClient } from '../kube/types.ts';

interface ReportOptions {
  readonly logger: Logger;
  /** That the user is an administrator. */
  readonly isExpected?: boolean;
}

const EVERYTHING = { verb: '*', group: '*', resource: '*', namespace: '' };

/** Never rejects. */
export async function reportOwnUser(
  client: Pick<WatchClient, 'cluster' | 'request'>,
  { logger, isExpected = false }: ReportOptions,
): Promise<void> {
  const { cluster } = client;
  try {
    const [user, denied] = await Promise.all([ownUserName(client), missingRights(client, [EVERYTHING])]);
    logger.info({ cluster, user }, 'connected');
    if (denied.length === 0 && !isExpected)
      logger.warn(
        { cluster, user },
        'the user may do everything in this cluster; grant what "endpoint-syncer rbac" prints to a ServiceAccount, and use its token',
      );
  } catch (error) {
    // An older server does not have the review, and nothing depends on it.
    logger.debug({ cluster, error: String(error) }, 'the name of the user is not known');
  }
}
