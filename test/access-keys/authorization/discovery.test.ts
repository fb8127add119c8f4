/** Every scope includes discovery, which clients read before their first request. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { EXTRA, type Scope } from '../../../src/access-keys/identity.ts';
import { startAuthorizationServer, caller, type AuthorizationServer } from './authorization-server.ts';

let server: AuthorizationServer;
beforeAll(async () => {
  server = await startAuthorizationServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const PATHS = ['/api', '/apis', '/apis/management.platform.sh/v1', '/openapi/v3', '/openapi/v2', '/version'];

const SCOPES: [string, Scope | undefined][] = [
  ['none', undefined],
  ['roles', { roles: [{ role: 'platformCLI' }] }],
  ['projects', { projects: [{ project: 'p' }] }],
  ['spaces', { spaces: [{ project: 'p', space: 's' }] }],
  ['virtualClusters', { virtualClusters: [{ project: 'p', virtualCluster: 'v' }] }],
  ['clusters', { clusters: [{ cluster: 'a' }] }],
  ['rules', { rules: [{ verbs: ['list'], cluster: 'a' }] }],
  ['allowPlatformCli', { allowPlatformCli: true }],
  ['no entry', {}],
];

describe('discovery of this API', () => {
  test.each(SCOPES)('with a scope of %s', async (name, scope) => {
    server.callers.set(name, caller('alice', [], scope));
    for (const path of PATHS) {
      const { status } = await server.send(name, 'GET', path);
      // There are no kinds of the core group.
      expect([path, status]).toEqual([path, path === '/api' ? 404 : 200]);
    }
    expect((await server.send(name, 'GET', '/metrics')).status).toBe(403);
    expect((await server.send(name, 'POST', '/apis')).status).toBeGreaterThanOrEqual(403);
  });
});

describe('discovery of a cluster', () => {
  test.each(SCOPES)('with a scope of %s: for the cluster to decide', async (_name, scope) => {
    const extra: JsonObject = scope === undefined ? {} : { [EXTRA.scope]: [JSON.stringify(scope)] };
    const reviews = '/kubernetes/cluster/a/apis/authorization.k8s.io/v1/subjectaccessreviews';
    for (const path of ['/api', '/apis/apps/v1', '/openapi/v3', '/version']) {
      const spec = { user: 'alice', extra, nonResourceAttributes: { verb: 'get', path } };
      const status = await server.review('delegator', reviews, spec);
      expect([path, status]).toEqual([path, { allowed: false }]);
    }
  });
});
