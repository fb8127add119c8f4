/**
 * Seven kinds of scope, each with every documented way in which a real kube-apiserver trusts this API: the table of
 * `docs/keys/connected-clusters.md`. Each request comes from a kubectl with an empty cache.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { documentedBlocks } from './documented-blocks.ts';
import { Platform, TrustingCluster, type Output, type Trust } from './trust-clusters.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await Platform.start();
});
afterAll(() => platform[Symbol.asyncDispose]());

const PODS = { verbs: ['get', 'list'], resources: [{ resources: ['pods'] }] };
const TOKENS = {
  requestTargets: ['Management'],
  resources: [{ group: 'management.platform.sh', resources: ['directclusterendpointtokens'] }],
};

const SCOPES = {
  none: null,
  clusters: { clusters: [{ cluster: 'cluster-a' }] },
  rules: {
    rules: [{ ...PODS, cluster: 'cluster-a' }, { ...PODS, virtualClusters: [{ name: 'v' }] }, TOKENS],
  },
  projects: { projects: [{ project: 'p' }] },
  spaces: { spaces: [{ project: 'p', space: 's' }] },
  virtualClusters: { virtualClusters: [{ project: 'p', virtualCluster: 'v' }] },
  roles: { roles: [{ role: 'platformCLI', projects: ['p'] }] },
  allowPlatformCli: { allowPlatformCli: true, rules: [TOKENS] },
} satisfies Record<string, JsonObject | null>;
type Kind = keyof typeof SCOPES;
const KINDS = Object.keys(SCOPES) as Kind[];

const SIGNED: Trust = { flags: ['signed-tokens.flags'], files: ['authentication.yaml'] };
const REVIEWED: Trust = { flags: ['token-reviews.flags'], files: ['tokenreviews.kubeconfig'] };
const RECOMMENDED: Trust = {
  flags: ['signed-tokens-with-reviews.flags', 'access-reviews-file.flags'],
  files: ['authentication-with-reviews.yaml', 'authorization.yaml', 'accessreviews.kubeconfig'],
};

const VIRTUAL_CLUSTER = {
  target: '/kubernetes/project/p/virtualcluster/v/',
  webhookScope: { virtualClusters: [{ project: 'p', virtualCluster: 'v' }] },
} satisfies Partial<Trust>;

/** The claim rule of a virtual cluster in the place of that of a cluster. */
function withVirtualClusterRule(text: string): string {
  const rule = documentedBlocks('keys/connected-clusters.md').get('virtual-cluster-rule.yaml') ?? '';
  return text.replace(/ {2}claimValidationRules:\n[^]*?(?= {2}claimMappings:)/u, rule);
}

/** `pods`: get pods; `nodes`: get nodes, which neither RBAC nor the rules allow. */
interface Results {
  readonly pods: string;
  readonly nodes: string;
}

function resultOf({ code, err }: Output): string {
  if (code === 0) return 'ok';
  if (/Unauthorized|asked for the client to provide credentials/u.test(err)) return '401';
  const reason = /access key scope does not \w+ [^\n]*$/mu.exec(err)?.[0];
  return err.includes('orbidden') ? `403${reason === undefined ? '' : ` ${reason}`}` : err;
}

async function results(cluster: TrustingCluster, credential: string): Promise<Results> {
  const pods = await cluster.kubectlWithoutCache(credential, 'get pods');
  return {
    pods: resultOf(pods),
    nodes: resultOf(await cluster.kubectlWithoutCache(credential, 'get nodes')),
  };
}

const IN: Results = { pods: 'ok', nodes: '403' };
const UNAUTHENTICATED: Results = { pods: '401', nodes: '401' };
const BY_RULE: Results = { pods: 'ok', nodes: '403 access key scope does not allow this resource' };
const outside = (target: string): Results => {
  const denied = `403 access key scope does not contain ${target}`;
  return { pods: denied, nodes: denied };
};

/** Every kind that is not named gets `otherwise`. */
function table(named: Partial<Record<Kind, Results>>, otherwise: Results): Record<string, Results> {
  return Object.fromEntries(KINDS.map((kind) => [kind, named[kind] ?? otherwise]));
}

const VIRTUAL = outside('virtual cluster "v" of project "p"');
const WHOLE = { none: IN, clusters: IN };
const PARTS = { none: IN, projects: IN, virtualClusters: IN };

describe.each<[string, Trust, 'token' | 'key', Record<string, Results>]>([
  ['a cluster, signed tokens', SIGNED, 'token', table(WHOLE, UNAUTHENTICATED)],
  ['a cluster, token reviews', REVIEWED, 'key', table({ ...WHOLE, rules: IN }, UNAUTHENTICATED)],
  [
    'a cluster, signed tokens with access reviews',
    RECOMMENDED,
    'token',
    table({ ...WHOLE, rules: BY_RULE }, outside('cluster "cluster-a"')),
  ],
  [
    'a virtual cluster, signed tokens',
    { ...SIGNED, ...VIRTUAL_CLUSTER, replace: withVirtualClusterRule },
    'token',
    table(PARTS, UNAUTHENTICATED),
  ],
  [
    'a virtual cluster, token reviews',
    { ...REVIEWED, ...VIRTUAL_CLUSTER },
    'key',
    table({ ...PARTS, roles: IN, rules: IN }, UNAUTHENTICATED),
  ],
  [
    'a virtual cluster, signed tokens with access reviews',
    { ...RECOMMENDED, ...VIRTUAL_CLUSTER },
    'token',
    table({ ...PARTS, roles: IN, rules: BY_RULE }, VIRTUAL),
  ],
])('%s', (what, trust, credential, expected) => {
  test('every kind of scope', { timeout: 600_000 }, async () => {
    await using cluster = await TrustingCluster.start(platform, trust);
    const found: Record<string, Results> = {};
    for (const kind of KINDS) {
      const name = `${what}-${kind}`.toLowerCase().replaceAll(/[^a-z]+/gu, '-');
      const key = await platform.key('ci.yaml', name, { scope: SCOPES[kind] });
      found[kind] = await results(cluster, credential === 'key' ? key : await platform.token(key));
    }
    expect(found).toEqual(expected);
  });
});
