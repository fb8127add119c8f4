/** Validation of scopes, with the exact messages. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import {
  RULE_ENTRIES_MAX,
  SCOPE_ENTRIES_MAX,
  validateScope,
} from '../../../src/access-keys/authorization/scope-validation.ts';
import { grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';

const found = (scope: JsonObject): string[] =>
  validateScope(scope, 'spec.scope').map(({ field, message }) => `${field}: ${message}`);

const rule = (fields: JsonObject): JsonObject => ({ rules: [fields] });
const resourceEntries = (...entries: JsonObject[]): JsonObject => rule({ resources: entries });
const resources = (...names: string[]): JsonObject => rule({ resources: [{ resources: names }] });

describe('valid scopes', () => {
  test.each<[string, JsonObject]>([
    ['nothing', {}],
    [
      'every list',
      {
        roles: [{ role: 'platformCLI', projects: ['a'], virtualClusters: ['v'] }, { role: 'loft-cli' }],
        projects: [{ project: 'a' }, { project: '*' }],
        spaces: [{ project: 'a', space: '*' }],
        virtualClusters: [{ project: '*', virtualCluster: 'v' }],
        clusters: [{ cluster: 'c.example.com' }],
        allowPlatformCli: true,
      },
    ],
    ['an empty rule', rule({})],
    [
      'a rule about resources',
      rule({
        verbs: ['get'],
        namespaces: ['', 'a'],
        resourceNames: ['x'],
        requestTargets: ['Cluster'],
        cluster: 'c',
        resources: [{ group: 'apps', resources: ['deployments', 'deployments/scale'] }],
      }),
    ],
    ['names beside resources', rule({ resources: [{ resources: ['pods'], resourceNames: ['x'] }] })],
    [
      'resources of one group in two entries',
      resourceEntries(
        { group: 'apps', resources: ['*'], resourceNames: ['a'] },
        { group: 'apps', resources: ['deployments'] },
        { resources: ['*'] },
      ),
    ],
    ['a whole group', rule({ resources: [{ group: 'apps' }] })],
    [
      'a wildcard in entries of different groups',
      resourceEntries({ resources: ['*'] }, { group: 'apps' }, { group: 'batch', resources: ['*'] }),
    ],
    ['a name twice without a wildcard', resources('pods', 'pods')],
    ['wildcards that do not overlap', resources('pods', 'pods/*', 'services/status')],
    ['paths', rule({ nonResourceURLs: ['*', '/api', '/api/*'] })],
    ['virtual clusters', rule({ virtualClusters: [{}, { name: 'v', namespace: 'p-a' }] })],
  ])('%s', (_what, scope) => {
    expect(found(scope)).toEqual([]);
  });
});

describe('invalid scopes', () => {
  test.each<[string, JsonObject, string]>([
    [
      'an unknown role',
      { roles: [{ role: 'admin' }] },
      'spec.scope.roles[0].role: Unsupported value: "admin": supported values: "platformCLI", "loft-cli"',
    ],
    [
      'a role in other letters',
      { roles: [{ role: 'PlatformCli' }] },
      'spec.scope.roles[0].role: Unsupported value: "PlatformCli": supported values: "platformCLI", "loft-cli"',
    ],
    ['no role', { roles: [{}] }, 'spec.scope.roles[0].role: Required value'],
    [
      'an empty project of a role',
      { roles: [{ role: 'platformCLI', projects: [''] }] },
      'spec.scope.roles[0].projects[0]: Required value: a name, or * for all',
    ],
    [
      'an empty project',
      { projects: [{}] },
      'spec.scope.projects[0].project: Required value: a name, or * for all',
    ],
    [
      'a part of a wildcard',
      { projects: [{ project: 'a*' }] },
      'spec.scope.projects[0].project: Invalid value: "a*": a wildcard must be the whole name: *',
    ],
    [
      'a path as a name',
      { clusters: [{ cluster: 'a/b' }] },
      'spec.scope.clusters[0].cluster: Invalid value: "a/b": may not contain \'/\'',
    ],
    [
      'a space without its project',
      { spaces: [{ space: 's' }] },
      'spec.scope.spaces[0].project: Required value: a name, or * for all',
    ],
    [
      'a virtual cluster without a name',
      { virtualClusters: [{ project: 'a' }] },
      'spec.scope.virtualClusters[0].virtualCluster: Required value: a name, or * for all',
    ],
    [
      'a wildcard verb',
      rule({ verbs: ['*'] }),
      'spec.scope.rules[0].verbs[0]: Invalid value: "*": leave the list empty to match every verb',
    ],
    [
      'a group that is none',
      rule({ resources: [{ group: 'Apps', resources: ['x'] }] }),
      'spec.scope.rules[0].resources[0].group: Invalid value: "Apps"',
    ],
    [
      'names without resources',
      rule({ resources: [{ resourceNames: ['x'] }] }),
      'spec.scope.rules[0].resources[0].resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
    ],
    [
      'names of a rule without resources',
      rule({ resourceNames: ['x'] }),
      'spec.scope.rules[0].resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
    ],
    [
      'names of a rule with a whole group',
      rule({ resourceNames: ['x'], resources: [{ group: 'apps' }] }),
      'spec.scope.rules[0].resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
    ],
    [
      'a wildcard as a name',
      rule({ resourceNames: ['*'], resources: [{ resources: ['pods'] }] }),
      'spec.scope.rules[0].resourceNames[0]: Invalid value: "*": wildcards are not allowed: leave the list empty',
    ],
    [
      'three parts',
      resources('a/b/c'),
      'spec.scope.rules[0].resources[0].resources[0]: Invalid value: "a/b/c": must be a resource,',
    ],
    ['double wildcard', resources('*/*'), 'Invalid value: "*/*": use "*" for all resources and subresources'],
    [
      'a wildcard within a path',
      rule({ nonResourceURLs: ['/api/*/x'] }),
      'spec.scope.rules[0].nonResourceURLs[0]: Invalid value: "/api/*/x": non-resource URL wildcards \'*\' must be the final character of the rule',
    ],
    [
      'a wildcard within a step',
      rule({ nonResourceURLs: ['/api*'] }),
      'spec.scope.rules[0].nonResourceURLs[0]: Invalid value: "/api*": a wildcard \'*\' must be the whole final path step',
    ],
    [
      'a path without a slash',
      rule({ nonResourceURLs: ['api'] }),
      'spec.scope.rules[0].nonResourceURLs[0]: Invalid value: "api": non-resource URL rules must begin with a \'/\' character',
    ],
    [
      'paths and resources',
      rule({ nonResourceURLs: ['/api'], resources: [{ resources: ['pods'] }] }),
      'rules cannot apply to both regular resources and non-resource URLs',
    ],
    [
      'paths and namespaces',
      rule({ nonResourceURLs: ['/api'], namespaces: ['a'] }),
      'rules cannot apply to both regular resources and non-resource URLs',
    ],
    [
      'an unknown target',
      rule({ requestTargets: ['Space'] }),
      'spec.scope.rules[0].requestTargets[0]: Unsupported value: "Space": supported values: "Management", "Cluster", "ProjectSpace", "ProjectVirtualCluster"',
    ],
    [
      'virtual clusters beside a cluster',
      rule({ cluster: 'c', virtualClusters: [{ name: 'v' }] }),
      'spec.scope.rules[0].virtualClusters: Invalid value: [{"name":"v"}]: never matches: cluster allows requests to that cluster only',
    ],
    [
      'a resource that another entry contains',
      resourceEntries({ group: 'apps', resources: ['*'] }, { group: 'apps', resources: ['deployments'] }),
      'spec.scope.rules[0].resources[1].resources[0]: Invalid value: "deployments": if \'*\' is present, must not specify deployments',
    ],
    [
      'names of an entry that are none of the rule',
      rule({ resourceNames: ['a'], resources: [{ resources: ['pods'], resourceNames: ['b'] }] }),
      'spec.scope.rules[0].resources[0].resourceNames: Invalid value: ["b"]: never matches: none is in resourceNames of the rule',
    ],
    [
      'a cluster that the targets leave out',
      rule({ cluster: 'c', requestTargets: ['ProjectVirtualCluster'] }),
      'spec.scope.rules[0].requestTargets: Invalid value: ["ProjectVirtualCluster"]: must contain Cluster, or cluster never matches',
    ],
    [
      'virtual clusters that the targets leave out',
      rule({ virtualClusters: [{ name: 'v' }], requestTargets: ['Cluster'] }),
      'must contain ProjectVirtualCluster, or virtualClusters never matches',
    ],
  ])('%s', (_what, scope, text) => {
    expect(found(scope).join('\n')).toContain(text);
  });

  test.each<[string, JsonObject, string]>([
    ['* twice', resources('*', '*'), 'resources[0].resources[1]'],
    ['a wildcard twice', resources('pods/*', 'pods/*'), 'resources[0].resources[1]'],
    ['a name twice beside a wildcard', resources('pods', '*/scale', 'pods'), 'resources[0].resources[2]'],
    [
      '* in two entries of a group',
      resourceEntries({ resources: ['*'] }, { group: 'apps' }, { group: '', resources: ['*'] }),
      'resources[2].resources[0]',
    ],
    [
      'an entry without resources after a name',
      resourceEntries({ resources: ['pods'] }, {}),
      'resources[0].resources[0]',
    ],
    [
      'an entry without resources before a name',
      resourceEntries({ group: 'apps', resources: [] }, { group: 'apps', resources: ['deployments'] }),
      'resources[1].resources[0]',
    ],
    ['two entries without resources', resourceEntries({}, {}), 'resources[1].resources[0]'],
    [
      'a wildcard in two entries',
      resourceEntries({ resources: ['*/scale'] }, { resources: ['*/scale'] }),
      'resources[1].resources[0]',
    ],
  ])('%s overlap', (_what, scope, at) => {
    expect(found(scope)).toEqual([expect.stringContaining(`spec.scope.rules[0].${at}: Invalid value`)]);
  });

  test.each<[string[], string]>([
    [['*', 'pods'], "if '*' is present, must not specify pods"],
    [['*', '*/scale'], "if '*' is present, must not specify */scale"],
    [['*', 'pods/*'], "if '*' is present, must not specify pods/*"],
    [['pods/*', 'pods/log'], "if 'pods/*' is present, must not specify pods/log"],
    [['*/scale', 'pods/scale'], "if '*/scale' is present, must not specify pods/scale"],
    [['pods/*', '*/scale'], "if '*/scale' is present, must not specify pods/*"],
  ])('%s overlap, in either order', (names, text) => {
    expect(found(resources(...names)).join('\n')).toContain(text);
    expect(found(resources(...names.toReversed())).join('\n')).toContain(text);
  });

  test('a scope with more entries than a decision may read is invalid', () => {
    const project = (_: unknown, index: number): JsonObject => ({ project: `p${index}` });
    const scope = { projects: Array.from({ length: SCOPE_ENTRIES_MAX + 1 }, project) };
    expect(found(scope)).toEqual(['spec.scope: Too many: 1001: must have at most 1000 items']);
    const verbs = Array.from({ length: RULE_ENTRIES_MAX }, () => 'get');
    expect(found(rule({ verbs }))).toEqual(['spec.scope.rules: Too many: 201: must have at most 200 items']);
    const names = Array.from({ length: 32 }, (_, index) => `n${index}`);
    const role = { role: 'platformCLI', projects: names, virtualClusters: names };
    expect(found({ roles: [role] })).toEqual(['spec.scope: Too many: 1025: must have at most 1000 items']);
  });
});

test('validation of any JSON object does not throw', () => {
  fc.assert(
    fc.property(fc.object({ withBigInt: false }), (value) => {
      const scope = JSON.parse(JSON.stringify(value)) as JsonObject;
      expect(Array.isArray(validateScope(scope, 'spec.scope'))).toBe(true);
    }),
    { numRuns: 300 },
  );
});

// The scopes of the documentation are valid.

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'keys', 'scopes.md');

test('every scope on the page is valid, and each of its entries grants something', () => {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```yaml scope\n(.*?)^```$/gms)];
  const scopes = blocks.map(([, text = '']) => parse(text) as JsonObject); // objects, as the page shows
  expect(scopes).toHaveLength(2);
  for (const scope of scopes) {
    expect(validateScope(scope, 'spec.scope')).toEqual([]);
    const places = new Set(grantsOf(scope).map(({ place }) => place));
    for (const [list, entries] of Object.entries(scope)) {
      for (const index of (entries as JsonObject[]).keys()) expect(places).toContain(`${list}[${index}]`);
    }
  }
});
