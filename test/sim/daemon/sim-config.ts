/** The configurations between which a simulated daemon is restarted. */

import type { Config } from '../../../src/config/types.ts';
import { validConfig } from '../../config/setup.ts';
import { HOST_NAMESPACE, VCLUSTER } from '../world/names.ts';

/** The patches, with what they do in the words of the naive model. */
export const TEAM = 'example.com/team';
export const FORWARD = 'example.com/forward';

const PATCHES = `
        - path: metadata.annotations["${TEAM}"]
          expression: '"team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: metadata.annotations["${FORWARD}"]
          expression: '"[" + value + "]"'
        - path: subsets[*].addresses[*].hostname
          expression: value + "-x"
          reverseExpression: value.replace(/-x$/, "")`;

export function simConfig(isPatched: boolean): Config {
  return validConfig(`
sync:
  toHost:
    endpoints:
      patches: ${isPatched ? PATCHES : '[]'}
endpointSyncer: {name: ${VCLUSTER}, host: {namespace: ${HOST_NAMESPACE}}}
`);
}
