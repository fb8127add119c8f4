/** For which clusters a credential is: its audiences, by its scope. */

import { expect, test } from 'vitest';
import { audiencesOf } from '../../../src/access-keys/authorization/audiences.ts';
import type { Scope } from '../../../src/access-keys/identity.ts';

const COMMON = ['direct-cluster-endpoint.platform.sh'];
const A = 'direct-cluster-endpoint.platform.sh/a';
const B = 'direct-cluster-endpoint.platform.sh/b';

test.each<[what: string, scope: Scope | undefined, audiences: readonly string[]]>([
  ['no scope', undefined, COMMON],
  ['a cluster', { clusters: [{ cluster: 'a' }] }, [A]],
  [
    'clusters, one of them twice',
    { clusters: [{ cluster: 'a' }, { cluster: 'b' }, { cluster: 'a' }] },
    [A, B],
  ],
  ['all clusters', { clusters: [{ cluster: '*' }] }, COMMON],
  ['a cluster and all', { clusters: [{ cluster: 'a' }, { cluster: '*' }] }, COMMON],
  ['a cluster and a project', { clusters: [{ cluster: 'a' }], projects: [{ project: '*' }] }, [A]],
  ['a rule for a cluster', { rules: [{ verbs: ['get'], cluster: 'a' }] }, [A]],
  ['rules for clusters', { rules: [{ cluster: 'a' }, { cluster: 'b' }] }, [A, B]],
  [
    'a cluster, and a rule for another one',
    { clusters: [{ cluster: 'a' }], rules: [{ cluster: 'b' }] },
    [A, B],
  ],
  ['a cluster, and a rule for every one', { clusters: [{ cluster: 'a' }], rules: [{ verbs: ['get'] }] }, [A]],
  [
    'a rule for a cluster, and one for this API',
    { rules: [{ cluster: 'a' }, { requestTargets: ['Management'] }] },
    [A],
  ],
  ['all clusters, and a rule for one', { clusters: [{ cluster: '*' }], rules: [{ cluster: 'a' }] }, COMMON],
  ['a rule for every cluster', { rules: [{ requestTargets: ['Cluster'] }] }, COMMON],
  ['a project', { projects: [{ project: 'a' }] }, COMMON],
  ['a space', { spaces: [{ project: 'p', space: 'a' }] }, COMMON],
  ['a virtual cluster', { virtualClusters: [{ project: 'p', virtualCluster: 'a' }] }, COMMON],
  ['a role', { roles: [{ role: 'platformCLI', projects: ['p'] }] }, COMMON],
  ['nothing', {}, COMMON],
])('of a scope with %s', (_what, scope, audiences) => {
  expect(audiencesOf(scope)).toEqual(audiences);
});
