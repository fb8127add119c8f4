/** Random scopes and requests over few names, so that they often match. */

import fc from 'fast-check';
import type { AccessRequest } from '../../../src/apiserver/request/request-info.ts';
import type { Scope, ScopeRule } from '../../../src/access-keys/identity.ts';

const name = fc.constantFrom('a', 'b');
const nameOrAny = fc.constantFrom('a', 'b', '*');
const verb = fc.constantFrom('get', 'list', 'create', 'delete');
const some = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 2 });
const GROUPS = ['', 'apps', 'management.platform.sh'];
const RESOURCES = ['pods', 'ownedaccesskeys', 'directclusterendpointtokens'];

const entries = fc.record(
  {
    group: fc.constantFrom(...GROUPS),
    resources: some(
      fc.constantFrom(...RESOURCES, '*', 'pods/log', 'pods/*', '*/log', '*/status', 'ownedaccesskeys/*'),
    ),
    resourceNames: some(name),
  },
  { requiredKeys: [] },
);

const rule: fc.Arbitrary<ScopeRule> = fc.record(
  {
    verbs: some(verb),
    resources: some(entries),
    resourceNames: some(name),
    namespaces: some(fc.constantFrom('', 'a', 'b')),
    nonResourceURLs: some(fc.constantFrom('*', '/version', '/api', '/api/*', '/apis/*', '/apis/apps/*')),
    requestTargets: some(fc.constantFrom('Management', 'Cluster', 'ProjectSpace', 'ProjectVirtualCluster')),
    cluster: name,
    virtualClusters: some(
      fc.record({ name, namespace: fc.constantFrom('p-a', 'p-b', 'a') }, { requiredKeys: [] }),
    ),
  },
  { requiredKeys: [] },
);

export const scopes: fc.Arbitrary<Scope> = fc.record(
  {
    roles: some(
      fc.record(
        {
          role: fc.constantFrom('platformCLI', 'loft-cli', 'other'),
          projects: some(nameOrAny),
          virtualClusters: some(nameOrAny),
        },
        { requiredKeys: ['role'] },
      ),
    ),
    projects: some(fc.record({ project: nameOrAny })),
    spaces: some(fc.record({ project: nameOrAny, space: nameOrAny })),
    virtualClusters: some(fc.record({ project: nameOrAny, virtualCluster: nameOrAny })),
    clusters: some(fc.record({ cluster: nameOrAny })),
    rules: some(rule),
    allowPlatformCli: fc.boolean(),
  },
  { requiredKeys: [] },
);

export const prefixes = fc.constantFrom(
  '',
  '/kubernetes/cluster/a',
  '/kubernetes/cluster/b',
  '/kubernetes/project/a/space/a',
  '/kubernetes/project/a/space/b',
  '/kubernetes/project/b/space/a',
  '/kubernetes/project/a/virtualcluster/a',
  '/kubernetes/project/b/virtualcluster/b',
);

const onResources: fc.Arbitrary<AccessRequest> = fc.record({
  verb: fc.constantFrom('get', 'list', 'create', 'delete', 'update'),
  group: fc.constantFrom(...GROUPS),
  version: fc.constant('v1'),
  resource: fc.constantFrom(...RESOURCES),
  subresource: fc.constantFrom('', 'log', 'status'),
  namespace: fc.constantFrom('', 'a', 'c'),
  name: fc.constantFrom('', 'a', 'b', 'c'),
  path: fc.constant(''),
  prefix: prefixes,
});

const onPaths: fc.Arbitrary<AccessRequest> = fc.record({
  verb: fc.constantFrom('get', 'post'),
  group: fc.constant(''),
  version: fc.constant(''),
  resource: fc.constant(''),
  subresource: fc.constant(''),
  namespace: fc.constant(''),
  name: fc.constant(''),
  path: fc.constantFrom('/version', '/api', '/api/v1', '/apis/apps', '/apis/apps/v1', '/metrics'),
  prefix: prefixes,
});

export const requests = fc.oneof(onResources, onPaths);
