/** What the API says it is. */

import type { ServerVersion } from '../../apiserver/request/meta-handler.ts';

/** The Kubernetes whose API machinery this is like: kubectl warns of versions too far from its own. */
const KUBERNETES_MINOR = '36';

/** `v1.36.0+endpoint-syncer.0.1.0`. */
export function serverVersion(version: string): ServerVersion {
  return {
    major: '1',
    minor: KUBERNETES_MINOR,
    gitVersion: `v1.${KUBERNETES_MINOR}.0+endpoint-syncer.${version}`,
  };
}
