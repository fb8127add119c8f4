/** Whether one scope contains another. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { widerThan, grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';
import { matchGrants, targetOf } from '../../../src/access-keys/authorization/grants.ts';
import type { Scope, ScopeRule } from '../../../src/access-keys/identity.ts';
import { requests, scopes } from './random-scopes.ts';

const rules = (...list: ScopeRule[]): Scope => ({ rules: list });

describe('contained scopes', () => {
  test.each<[Scope | undefined, Scope | undefined]>([
    [undefined, undefined],
    [{}, undefined],
    [{}, {}],
    [{}, { projects: [{ project: 'a' }] }],
    [{ clusters: [{ cluster: 'a' }] }, { clusters: [{ cluster: '*' }] }],
    [{ clusters: [{ cluster: 'a' }] }, { clusters: [{ cluster: 'b' }, { cluster: 'a' }] }],
    [{ projects: [{ project: 'a' }] }, { projects: [{ project: '*' }] }],
    [{ spaces: [{ project: 'a', space: 's' }] }, { projects: [{ project: 'a' }] }],
    [{ virtualClusters: [{ project: 'a', virtualCluster: '*' }] }, { projects: [{ project: 'a' }] }],
    [
      { projects: [{ project: 'a' }] },
      { spaces: [{ project: 'a', space: '*' }], virtualClusters: [{ project: '*', virtualCluster: '*' }] },
    ],
    [{ allowPlatformCli: true }, { roles: [{ role: 'platformCLI' }] }],
    [{ roles: [{ role: 'loft-cli' }] }, { allowPlatformCli: true }],
    [{ roles: [{ role: 'loft-cli' }] }, { roles: [{ role: 'platformCLI', projects: ['a'] }] }],
    [{ roles: [{ role: 'x', projects: ['a'] }] }, {}],
    [{ projects: [{ project: 'a' }] }, rules({})],
    [rules({ verbs: ['get'] }), rules({ verbs: ['list', 'get'] })],
    [rules({ resources: [{ resources: ['pods'] }] }), rules({ resources: [{}] })],
    [rules({ resources: [{ resources: ['pods/log'] }] }), rules({ resources: [{ resources: ['pods/*'] }] })],
    [rules({ resources: [{ resources: ['pods/log'] }] }), rules({ resources: [{ resources: ['*/log'] }] })],
    [
      rules({ resources: [{ resources: ['a', 'b'] }] }),
      rules({ resources: [{ resources: ['b'] }, { resources: ['a'] }] }),
    ],
    [rules({ nonResourceURLs: ['/api/v1'] }), rules({ nonResourceURLs: ['/api/*'] })],
    [rules({ nonResourceURLs: ['/api/v1/*'] }), rules({ nonResourceURLs: ['/api/*'] })],
    [rules({ namespaces: ['a'] }), rules({ namespaces: ['a', 'b'] })],
    [rules({ requestTargets: ['Cluster'] }), { clusters: [{ cluster: '*' }] }],
    [rules({ cluster: 'a', verbs: ['get'] }), { clusters: [{ cluster: 'a' }] }],
    [rules({ cluster: 'a' }), rules({ requestTargets: ['Cluster'] })],
    [rules({ virtualClusters: [{ name: 'v', namespace: 'p-a' }] }), { projects: [{ project: 'a' }] }],
    [
      rules({}),
      rules(
        { requestTargets: ['Management', 'Cluster'] },
        { requestTargets: ['ProjectSpace'] },
        { virtualClusters: [{}] },
      ),
    ],
  ])('%j in %j', (inner, outer) => {
    expect(widerThan(inner, outer)).toBeUndefined();
  });
});

describe('wider scopes', () => {
  test.each<[Scope | undefined, Scope, string, string]>([
    [undefined, {}, '', 'without a scope there is no restriction'],
    [
      { projects: [{ project: 'a' }] },
      {},
      'projects[0]',
      'allows more in space "*" of project "a" than the scope of the caller',
    ],
    [
      { projects: [{ project: 'a' }, { project: 'b' }] },
      { projects: [{ project: 'a' }] },
      'projects[1]',
      'allows more in space "*" of project "b" than the scope of the caller',
    ],
    [
      { projects: [{ project: '*' }] },
      { projects: [{ project: 'a' }] },
      'projects[0]',
      'allows more in space "*" of project "*" than the scope of the caller',
    ],
    [
      { clusters: [{ cluster: 'b' }] },
      { projects: [{ project: '*' }] },
      'clusters[0]',
      'allows more in cluster "b" than the scope of the caller',
    ],
    [
      { allowPlatformCli: true },
      { projects: [{ project: '*' }] },
      'allowPlatformCli',
      'allows more in the management API than the scope of the caller',
    ],
    [
      rules({ verbs: ['get'] }),
      { clusters: [{ cluster: '*' }] },
      'rules[0]',
      'allows more in the management API than the scope of the caller',
    ],
    [
      rules({ verbs: ['get', 'delete'] }),
      rules({ verbs: ['get'] }),
      'rules[0]',
      'allows more in the management API than the scope of the caller',
    ],
    [
      rules({}),
      rules({ verbs: ['get'] }),
      'rules[0]',
      'allows more in the management API than the scope of the caller',
    ],
  ])('%j in %j', (inner, outer, path, text) => {
    expect(widerThan(inner, outer)).toEqual({ path, text });
  });
});

test('a request that a scope allows is allowed by every scope that contains it', () => {
  let held = 0;
  fc.assert(
    fc.property(
      scopes,
      scopes,
      fc.array(requests, { minLength: 1, maxLength: 20 }),
      (inner, outer, asked) => {
        if (widerThan(inner, outer)) return;
        held++;
        for (const request of asked) {
          const target = targetOf(request.prefix) ?? { kind: 'Management', names: [] };
          if (!matchGrants(grantsOf(inner), request, target).isAllowed) continue;
          expect(matchGrants(grantsOf(outer), request, target).isAllowed).toBe(true);
        }
      },
    ),
    { numRuns: 1500 },
  );
  expect(held).toBeGreaterThan(100);
});

test('every scope contains itself, also with additional entries', () => {
  fc.assert(
    fc.property(scopes, scopes, (scope, other) => {
      expect(widerThan(scope, scope)).toBeUndefined();
      const both: Scope = {
        roles: [...(other.roles ?? []), ...(scope.roles ?? [])],
        projects: [...(other.projects ?? []), ...(scope.projects ?? [])],
        spaces: [...(other.spaces ?? []), ...(scope.spaces ?? [])],
        virtualClusters: [...(other.virtualClusters ?? []), ...(scope.virtualClusters ?? [])],
        clusters: [...(other.clusters ?? []), ...(scope.clusters ?? [])],
        rules: [...(other.rules ?? []), ...(scope.rules ?? [])],
        allowPlatformCli: other.allowPlatformCli === true || scope.allowPlatformCli === true,
      };
      expect(widerThan(scope, both)).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test('the largest scopes are compared in a few milliseconds of processor time', () => {
  const project = (name: string, index: number): { project: string } => ({ project: `${name}${index}` });
  const large = (name: string): Scope => ({
    projects: Array.from({ length: 1000 }, (_, index) => project(name, index)),
  });
  const before = process.cpuUsage();
  expect(widerThan(large('a'), large('a'))).toBeUndefined();
  expect(widerThan(large('a'), large('b'))).toBeDefined();
  const rule = (_: unknown, index: number): ScopeRule => ({ nonResourceURLs: [`/${index}`] });
  const rules = Array.from({ length: 100 }, rule);
  expect(widerThan({ rules }, { rules: rules.toReversed() })).toBeUndefined();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(500);
});
