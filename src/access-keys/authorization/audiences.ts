/** The audiences of a credential: which clusters may accept it, so that a verifier that knows nothing of scopes keeps the other ones out. */

import { clusterAudience, TOKEN_AUDIENCE, type Scope } from '../identity.ts';
import { ANY, EVERYTHING } from './grants.ts';
import { grantsOf } from './scope-grants.ts';

/**
 * One for each cluster that the scope names, in `clusters` or in a rule, and not the common one. Without a scope, with the whole of all clusters,
 * and without the name of any, as for virtual clusters: the common one.
 */
export function audiencesOf(scope: Scope | undefined): readonly string[] {
  const clusters = new Set<string>();
  for (const { targets, requests } of scope === undefined ? [] : grantsOf(scope)) {
    for (const { kind, names } of targets) {
      if (kind !== 'Cluster') continue;
      if (names.includes(ANY) && requests === EVERYTHING) return [TOKEN_AUDIENCE];
      for (const name of names) if (name !== ANY) clusters.add(name);
    }
  }
  return clusters.size === 0 ? [TOKEN_AUDIENCE] : [...clusters].map(clusterAudience);
}
