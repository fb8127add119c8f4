/** Which requests a scope allows. */

import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { matchGrants, splitPath, targetOf } from '../../../src/access-keys/authorization/grants.ts';
import type { AccessRequest } from '../../../src/apiserver/request/request-info.ts';
import { grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';
import type { RequestTarget, Scope, ScopeRule } from '../../../src/access-keys/identity.ts';
import { requests, scopes } from './random-scopes.ts';

const NOTHING: AccessRequest = {
  verb: 'get',
  group: '',
  version: 'v1',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  path: '',
  prefix: '',
};
const MANAGEMENT: RequestTarget = { kind: 'Management', names: [] };
const cluster = (name: string): RequestTarget => ({ kind: 'Cluster', names: [name] });
const space = (...names: [project: string, name: string]): RequestTarget => ({ kind: 'ProjectSpace', names });
const virtualCluster = (...names: [project: string, name: string]): RequestTarget => ({
  kind: 'ProjectVirtualCluster',
  names,
});

const POD = { ...NOTHING, resource: 'pods', namespace: 'n', name: 'x' };

const key = (verb: string): AccessRequest => ({
  ...NOTHING,
  verb,
  group: 'management.platform.sh',
  resource: 'ownedaccesskeys',
});
const token = { ...key('create'), resource: 'directclusterendpointtokens' };
const path = (text: string, verb = 'get'): AccessRequest => ({ ...NOTHING, verb, path: text });
const self = (resource: string, group = 'authorization.k8s.io'): AccessRequest => ({
  ...NOTHING,
  verb: 'create',
  group,
  resource,
});
const REACHED = ''; // no reason: it is allowed

/** The reason, without its common beginning; `''` when it is allowed. */
function verdict(scope: Scope, request: AccessRequest, target: RequestTarget): string {
  const { isAllowed, reason } = matchGrants(grantsOf(scope), request, target);
  expect(isAllowed).toBe(reason === '');
  return reason.replace(/^access key scope /, '');
}

describe('targets', () => {
  test.each<[Scope, RequestTarget, string]>([
    [{}, MANAGEMENT, 'allows nothing'],
    [{}, cluster('a'), 'allows nothing'],
    [{ projects: [{ project: 'a' }] }, space('a', 's'), REACHED],
    [{ projects: [{ project: 'a' }] }, virtualCluster('a', 'v'), REACHED],
    [
      { projects: [{ project: 'a' }] },
      virtualCluster('b', 'v'),
      'does not contain virtual cluster "v" of project "b"',
    ],
    [{ projects: [{ project: 'a' }] }, cluster('a'), 'does not contain cluster "a"'],
    [{ projects: [{ project: 'a' }] }, MANAGEMENT, 'does not allow this resource'],
    [{ projects: [{ project: '*' }] }, space('b', 's'), REACHED],
    [{ projects: [{}] }, space('', 's'), 'allows nothing'],
    [{ spaces: [{ project: 'a', space: 's' }] }, space('a', 's'), REACHED],
    [
      { spaces: [{ project: 'a', space: 's' }] },
      space('b', 's'),
      'does not contain space "s" of project "b"',
    ],
    [
      { spaces: [{ project: 'a', space: 's' }] },
      virtualCluster('a', 's'),
      'does not contain virtual cluster "s" of project "a"',
    ],
    [{ spaces: [{ project: 'a', space: '*' }] }, space('a', 't'), REACHED],
    [{ spaces: [{ project: '*', space: 's' }] }, space('b', 's'), REACHED],
    [{ virtualClusters: [{ project: 'a', virtualCluster: 'v' }] }, virtualCluster('a', 'v'), REACHED],
    [
      { virtualClusters: [{ project: 'a', virtualCluster: 'v' }] },
      virtualCluster('a', 'w'),
      'does not contain virtual cluster "w" of project "a"',
    ],
    [{ virtualClusters: [{ project: 'a', virtualCluster: '*' }] }, virtualCluster('a', 'w'), REACHED],
    [{ clusters: [{ cluster: 'a' }] }, cluster('a'), REACHED],
    [{ clusters: [{ cluster: 'a' }] }, cluster('ab'), 'does not contain cluster "ab"'],
    [{ clusters: [{ cluster: 'a' }, { cluster: 'b' }] }, cluster('b'), REACHED],
    [{ clusters: [{ cluster: '*' }] }, cluster('b'), REACHED],
    [{ clusters: [{ cluster: '*' }] }, space('a', 'b'), 'does not contain space "b" of project "a"'],
    [{ roles: [{ role: 'platformCLI', projects: ['a'] }] }, space('a', 's'), REACHED],
    [
      { roles: [{ role: 'platformCLI', projects: ['a'] }] },
      space('b', 's'),
      'does not contain space "s" of project "b"',
    ],
    [
      { roles: [{ role: 'loft-cli', projects: ['a'], virtualClusters: ['v'] }] },
      virtualCluster('a', 'v'),
      REACHED,
    ],
    [
      { roles: [{ role: 'loft-cli', projects: ['a'], virtualClusters: ['v'] }] },
      virtualCluster('a', 'w'),
      'does not contain virtual cluster "w" of project "a"',
    ],
    [
      { roles: [{ role: 'loft-cli', projects: ['a'], virtualClusters: ['v'] }] },
      space('a', 'v'),
      'does not contain space "v" of project "a"',
    ],
    [{ roles: [{ role: 'loft-cli', virtualClusters: ['v'] }] }, virtualCluster('b', 'v'), REACHED],
    [
      { roles: [{ role: 'loft-cli' }] },
      virtualCluster('b', 'v'),
      'does not contain virtual cluster "v" of project "b"',
    ],
    [{ roles: [{ role: 'admin', projects: ['a'] }] }, space('a', 's'), 'allows nothing'],
  ])('%j and a pod in %j: "%s"', (scope, target, reason) => {
    expect(verdict(scope, POD, target)).toBe(reason);
  });
});

describe('the management API', () => {
  const cli: Scope = { roles: [{ role: 'platformCLI' }] };
  const project: Scope = { projects: [{ project: 'a' }] };
  test.each<[string, Scope, AccessRequest, string]>([
    ['the CLI reads keys', cli, key('list'), REACHED],
    ['the CLI watches keys', cli, key('watch'), REACHED],
    ['the CLI creates none', cli, key('create'), 'does not allow this verb'],
    ['the CLI deletes none', cli, key('delete'), 'does not allow this verb'],
    ['the CLI fetches no tokens', cli, token, 'does not allow this resource'],
    ['the CLI asks who it is', cli, self('selfsubjectreviews', 'authentication.k8s.io'), REACHED],
    ['the CLI asks what it may do', cli, self('selfsubjectaccessreviews'), REACHED],
    ['the CLI reviews no other user', cli, self('subjectaccessreviews'), 'does not allow this resource'],
    ['the CLI finds out what there is', cli, path('/openapi/v3/apis/x'), REACHED],
    ['the older word', { allowPlatformCli: true }, key('get'), REACHED],
    ['the older word, denied', { allowPlatformCli: false }, key('get'), 'allows nothing'],
    ['the older name', { roles: [{ role: 'loft-cli' }] }, key('get'), REACHED],
    ['a project fetches tokens', project, token, REACHED],
    ['a project asks what it may do', project, self('selfsubjectrulesreviews'), REACHED],
    ['a project has discovery', project, path('/apis'), REACHED],
    ['a project only reads discovery', project, path('/apis', 'post'), 'does not allow this verb'],
    ['a project has no other paths', project, path('/metrics'), 'does not allow this path'],
    ['a project reads no keys', project, key('get'), 'does not allow this resource'],
    [
      'a role with a project fetches tokens',
      { roles: [{ role: 'platformCLI', projects: ['a'] }] },
      token,
      REACHED,
    ],
    [
      'an unknown role with a project fetches none',
      { roles: [{ role: 'x', projects: ['a'] }] },
      token,
      'allows nothing',
    ],
    ['union', { ...project, ...cli }, key('get'), REACHED],
  ])('%s', (_what, scope, request, reason) => {
    expect(verdict(scope, request, MANAGEMENT)).toBe(reason);
  });
});

describe('rules', () => {
  const list = (...resources: string[]): ScopeRule => ({ resources: [{ resources }] });
  const part = (resource: string, subresource: string): AccessRequest => ({ ...POD, resource, subresource });
  test.each<[string, ScopeRule, AccessRequest, string]>([
    ['an empty rule', {}, POD, REACHED],
    ['an empty rule and a path', {}, path('/metrics'), REACHED],
    ['verbs', { verbs: ['get', 'list'] }, POD, REACHED],
    ['another verb', { verbs: ['list'] }, POD, 'does not allow this verb'],
    ['verbs hold paths too', { verbs: ['list'] }, path('/metrics'), 'does not allow this verb'],
    ['a resource', list('pods'), POD, REACHED],
    ['another resource', list('services'), POD, 'does not allow this resource'],
    [
      'another group',
      { resources: [{ group: 'apps', resources: ['pods'] }] },
      POD,
      'does not allow this resource',
    ],
    ['a whole group', { resources: [{ group: '' }] }, POD, REACHED],
    ['a whole group with subresources', { resources: [{}] }, part('pods', 'log'), REACHED],
    ['a resource is not its subresources', list('pods'), part('pods', 'log'), 'does not allow this resource'],
    ['a subresource', list('pods/log'), part('pods', 'log'), REACHED],
    ['a subresource is not the resource', list('pods/log'), POD, 'does not allow this resource'],
    ['all resources', list('*'), POD, REACHED],
    ['all resources with subresources', list('*'), part('pods', 'log'), REACHED],
    ['all subresources', list('pods/*'), part('pods', 'log'), REACHED],
    ['all subresources are not the resource', list('pods/*'), POD, 'does not allow this resource'],
    ['all subresources of another', list('pods/*'), part('services', 'log'), 'does not allow this resource'],
    ['a subresource of any', list('*/log'), part('pods', 'log'), REACHED],
    ['a subresource of any is not the resource', list('*/log'), POD, 'does not allow this resource'],
    ['another subresource of any', list('*/scale'), part('pods', 'log'), 'does not allow this resource'],
    ['a list of resources does not hold paths', list('*'), path('/api'), 'does not allow this path'],
    ['names of an entry', { resources: [{ resources: ['pods'], resourceNames: ['x'] }] }, POD, REACHED],
    [
      'other names of an entry',
      { resources: [{ resources: ['pods'], resourceNames: ['y'] }] },
      POD,
      'does not allow this name',
    ],
    ['names of the rule', { ...list('pods'), resourceNames: ['x'] }, POD, REACHED],
    ['other names of the rule', { ...list('pods'), resourceNames: ['y'] }, POD, 'does not allow this name'],
    [
      'both names',
      { resources: [{ resources: ['pods'], resourceNames: ['x', 'y'] }], resourceNames: ['x'] },
      POD,
      REACHED,
    ],
    [
      'both names, nothing in common',
      { resources: [{ resources: ['pods'], resourceNames: ['y'] }], resourceNames: ['x'] },
      POD,
      'allows nothing',
    ],
    [
      'a rule with names, and a list without one',
      { ...list('pods'), resourceNames: ['x'] },
      { ...POD, verb: 'list', name: '' },
      'does not allow this name',
    ],
    ['namespaces', { namespaces: ['n'] }, POD, REACHED],
    ['other namespaces', { namespaces: ['m'] }, POD, 'does not allow this namespace'],
    ['no namespace', { namespaces: [''] }, { ...POD, namespace: '' }, REACHED],
    ['no namespace, but one asked for', { namespaces: [''] }, POD, 'does not allow this namespace'],
    ['namespaces are not about paths', { namespaces: [''] }, path('/api'), 'does not allow this path'],
    ['a path', { nonResourceURLs: ['/metrics'] }, path('/metrics'), REACHED],
    ['another path', { nonResourceURLs: ['/metrics'] }, path('/metrics/x'), 'does not allow this path'],
    ['paths below', { nonResourceURLs: ['/metrics/*'] }, path('/metrics/x/y'), REACHED],
    [
      'paths below are not the path',
      { nonResourceURLs: ['/metrics/*'] },
      path('/metrics'),
      'does not allow this path',
    ],
    ['all paths', { nonResourceURLs: ['*'] }, path('/x'), REACHED],
    ['paths are no resources', { nonResourceURLs: ['*'] }, POD, 'does not allow this resource'],
  ])('%s', (_what, rule, request, reason) => {
    expect(verdict({ rules: [rule] }, request, MANAGEMENT)).toBe(reason);
  });

  test.each<[string, ScopeRule, RequestTarget, string]>([
    ['every target', {}, virtualCluster('a', 'v'), REACHED],
    ['one kind', { requestTargets: ['Cluster'] }, cluster('a'), REACHED],
    ['another kind', { requestTargets: ['Cluster'] }, MANAGEMENT, 'does not contain the management API'],
    ['two kinds', { requestTargets: ['Cluster', 'ProjectSpace'] }, space('a', 's'), REACHED],
    ['a cluster', { cluster: 'a' }, cluster('a'), REACHED],
    ['another cluster', { cluster: 'a' }, cluster('b'), 'does not contain cluster "b"'],
    ['with a cluster nothing else', { cluster: 'a' }, MANAGEMENT, 'does not contain the management API'],
    [
      'a cluster that is not among the kinds',
      { cluster: 'a', requestTargets: ['Management'] },
      cluster('a'),
      'allows nothing',
    ],
    ['a cluster of both', { cluster: 'a', virtualClusters: [{ name: 'v' }] }, cluster('a'), REACHED],
    [
      'a virtual cluster of both',
      { cluster: 'a', virtualClusters: [{ name: 'v' }] },
      virtualCluster('b', 'v'),
      'does not contain virtual cluster "v" of project "b"',
    ],
    [
      'with both nothing else',
      { cluster: 'a', virtualClusters: [{ name: 'v' }] },
      cluster('b'),
      'does not contain cluster "b"',
    ],
    ['every virtual cluster', { virtualClusters: [{}] }, virtualCluster('a', 'v'), REACHED],
    ['a virtual cluster', { virtualClusters: [{ name: 'v' }] }, virtualCluster('b', 'v'), REACHED],
    [
      'another virtual cluster',
      { virtualClusters: [{ name: 'v' }] },
      virtualCluster('b', 'w'),
      'does not contain virtual cluster "w" of project "b"',
    ],
    [
      'by the namespace of its project',
      { virtualClusters: [{ name: 'v', namespace: 'p-a' }] },
      virtualCluster('a', 'v'),
      REACHED,
    ],
    [
      'in another namespace',
      { virtualClusters: [{ name: 'v', namespace: 'p-a' }] },
      virtualCluster('b', 'v'),
      'does not contain virtual cluster "v" of project "b"',
    ],
    [
      'a namespace of no project',
      { virtualClusters: [{ namespace: 'a' }] },
      virtualCluster('a', 'v'),
      'allows nothing',
    ],
    [
      'with virtual clusters nothing else',
      { virtualClusters: [{}] },
      MANAGEMENT,
      'does not contain the management API',
    ],
  ])('%s', (_what, rule, target, reason) => {
    expect(verdict({ rules: [rule] }, POD, target)).toBe(reason);
  });

  test('a rule for clusters does not allow creating tokens at the management API', () => {
    const scope: Scope = { rules: [{ requestTargets: ['Cluster'] }] };
    expect(verdict(scope, token, MANAGEMENT)).toBe('does not contain the management API');
  });

  test('the reason names the closest rule', () => {
    const scope: Scope = {
      rules: [list('services'), { verbs: ['list'], ...list('pods') }, { namespaces: ['m'] }],
    };
    expect(verdict(scope, POD, MANAGEMENT)).toBe('does not allow this verb');
  });
});

describe('an invalid scope allows nothing', () => {
  test.each([
    [{ rules: [{ verbs: 'get' }] }],
    [{ rules: [{ verbs: [1] }] }],
    [{ rules: [null] }],
    [{ rules: {} }],
    [{ clusters: [{ cluster: '*' }], projects: 'x' }],
    [{ allowPlatformCli: 'true', clusters: [{ cluster: '*' }] }],
    [[]],
    ['x'],
  ])('%j', (scope) => {
    expect(verdict(scope as unknown as Scope, POD, cluster('a'))).toBe('allows nothing');
  });
});

test('a scope allows what one of its entries allows, and nothing else', () => {
  fc.assert(
    fc.property(scopes, requests, (scope, request) => {
      const target = targetOf(request.prefix) ?? MANAGEMENT;
      const parts: Scope[] = [
        ...(scope.roles ?? []).map((item) => ({ roles: [item] })),
        ...(scope.projects ?? []).map((item) => ({ projects: [item] })),
        ...(scope.spaces ?? []).map((item) => ({ spaces: [item] })),
        ...(scope.virtualClusters ?? []).map((item) => ({ virtualClusters: [item] })),
        ...(scope.clusters ?? []).map((item) => ({ clusters: [item] })),
        ...(scope.rules ?? []).map((item) => ({ rules: [item] })),
        ...(scope.allowPlatformCli === undefined ? [] : [{ allowPlatformCli: scope.allowPlatformCli }]),
      ];
      const any = parts.some((entry) => matchGrants(grantsOf(entry), request, target).isAllowed);
      expect(matchGrants(grantsOf(scope), request, target).isAllowed).toBe(any);
    }),
    { numRuns: 500 },
  );
});

describe('paths', () => {
  test.each<[string, { prefix: string; path: string } | undefined]>([
    ['/apis', { prefix: '', path: '/apis' }],
    ['/', { prefix: '', path: '/' }],
    ['/kubernetesx/a', { prefix: '', path: '/kubernetesx/a' }],
    ['/kubernetes/management', { prefix: '', path: '/' }],
    ['/kubernetes/management/', { prefix: '', path: '/' }],
    ['/kubernetes/management/apis/x', { prefix: '', path: '/apis/x' }],
    ['/kubernetes/managementx/apis', undefined],
    ['/kubernetes', undefined],
    ['/kubernetes/', undefined],
    ['/kubernetes/cluster', undefined],
    ['/kubernetes/cluster/', undefined],
    ['/kubernetes/cluster//apis', undefined],
    ['/kubernetes/cluster/a', { prefix: '/kubernetes/cluster/a', path: '/' }],
    ['/kubernetes/cluster/a/', { prefix: '/kubernetes/cluster/a', path: '/' }],
    ['/kubernetes/cluster/a/apis/x', { prefix: '/kubernetes/cluster/a', path: '/apis/x' }],
    ['/kubernetes/project/a', undefined],
    ['/kubernetes/project/a/space', undefined],
    ['/kubernetes/project/a/space/', undefined],
    ['/kubernetes/project/a/pod/b/apis', undefined],
    ['/kubernetes/project/a/space/b/api/v1', { prefix: '/kubernetes/project/a/space/b', path: '/api/v1' }],
    [
      '/kubernetes/project/a/virtualcluster/v',
      { prefix: '/kubernetes/project/a/virtualcluster/v', path: '/' },
    ],
    ['/kubernetes/cluster/%zz/apis', undefined],
  ])('%s', (path, expected) => {
    expect(splitPath(path)).toEqual(expected);
  });
});

test.each([
  ['', MANAGEMENT],
  ['/kubernetes/cluster/a', cluster('a')],
  ['/kubernetes/cluster/a%20b', cluster('a b')],
  ['/kubernetes/project/a/space/s', space('a', 's')],
  ['/kubernetes/project/a/virtualcluster/v', virtualCluster('a', 'v')],
  ['/kubernetes/cluster/a/b', undefined],
  ['/other/cluster/a', undefined],
])('the prefix %s', (prefix, target) => {
  expect(targetOf(prefix)).toEqual(target);
});
