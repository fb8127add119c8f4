/**
 * Real kube-apiservers that trust the key API by signature, with the files and flags of `docs/keys/connected-clusters.md`: which tokens each
 * of them accepts, by their audiences alone where nothing else is checked; and what a restart needs.
 */

import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { selfSigned } from '../../src/access-keys/serving/certificates.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/listen.ts';
import { Platform, TrustingCluster, type Output, type Trust } from './trust-clusters.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await Platform.start();
});
afterAll(() => platform[Symbol.asyncDispose]());

const TOKENS = {
  requestTargets: ['Management'],
  resources: [{ group: 'management.platform.sh', resources: ['directclusterendpointtokens'] }],
};
const list = (cluster: string): JsonObject => ({ rules: [{ verbs: ['list'], cluster }, TOKENS] });

const SCOPES = {
  none: null,
  every: { clusters: [{ cluster: '*' }] },
  a: { clusters: [{ cluster: 'cluster-a' }] },
  b: { clusters: [{ cluster: 'cluster-b' }] },
  both: { clusters: [{ cluster: 'cluster-a' }, { cluster: 'cluster-b' }] },
  'rule-a': list('cluster-a'),
  'rule-b': list('cluster-b'),
  virtual: { virtualClusters: [{ project: 'p', virtualCluster: 'v' }] },
} satisfies Record<string, JsonObject | null>;

const FLAGS: Trust = { flags: ['oidc.flags'], files: [], alice: 'oidc:alice' };

/** Knows neither the rule nor the access reviews. */
const WITHOUT_RULE: Trust = {
  flags: ['signed-tokens-with-reviews.flags'],
  files: ['authentication-with-reviews.yaml'],
};

/** What the page calls it. */
const PAGE_SERVER = 'https://keys.example.com:8444';

const works = ({ code, err }: Output): boolean => code === 0 && err.startsWith('No resources found');
const isUnauthorized = ({ code, err }: Output): boolean => code === 1 && err.includes('Unauthorized');

test.each<[what: string, trust: Trust, accepted: readonly (keyof typeof SCOPES)[]]>([
  [
    'cluster-a, with the file',
    { flags: ['signed-tokens.flags'], files: ['authentication.yaml'] },
    ['none', 'every', 'a', 'both'],
  ],
  [
    'cluster-a, with the file without its rule',
    WITHOUT_RULE,
    ['none', 'every', 'a', 'both', 'rule-a', 'virtual'],
  ],
  [
    'a cluster that knows the common audience only',
    {
      ...WITHOUT_RULE,
      replace: (text) => text.replace(/^ *- direct-cluster-endpoint[^\n]*\/cluster-a\n/mu, ''),
    },
    ['none', 'every', 'virtual'],
  ],
  [
    'cluster-b, with flags',
    { ...FLAGS, replace: (text) => text.replace('cluster-a', 'cluster-b') },
    ['b', 'both', 'rule-b'],
  ],
  [
    'a cluster with flags and the common audience',
    { ...FLAGS, replace: (text) => text.replace('/cluster-a', '') },
    ['none', 'every', 'virtual'],
  ],
])('%s accepts the tokens that are for it', { timeout: 300_000 }, async (what, trust, accepted) => {
  await using cluster = await TrustingCluster.start(platform, trust);
  const found: Record<string, string> = {};
  for (const [kind, scope] of Object.entries(SCOPES)) {
    const name = `${what}-${kind}`.replaceAll(/[^a-z]+/gu, '-');
    const token = await platform.token(await platform.key('ci.yaml', name, { scope }));
    const output = await cluster.kubectl(token, 'get pods');
    found[kind] = works(output) ? 'ok' : isUnauthorized(output) ? '401' : output.err;
  }
  const names: readonly string[] = accepted;
  const kinds = Object.keys(SCOPES).map((kind) => [kind, names.includes(kind) ? 'ok' : '401']);
  expect(found).toEqual(Object.fromEntries(kinds));
});

test('with flags, users and groups of the cluster itself are other names', { timeout: 120_000 }, async () => {
  await using cluster = await TrustingCluster.start(platform, FLAGS);
  const master = { user: 'system:admin', groups: ['system:masters'] };
  const token = await platform.token(await platform.key('ci.yaml', 'flags-master', master));
  const { code, err } = await cluster.kubectl(token, 'get pods');
  expect([code, err]).toEqual([1, expect.stringContaining('User "oidc:system:admin" cannot list')]);
  const whoami = await cluster.kubectl(token, 'auth whoami -o jsonpath={.status.userInfo.groups}');
  expect(JSON.parse(whoami.out)).toEqual(['oidc:system:masters', 'system:authenticated']);
});

describe('a kube-apiserver that restarts while this API is down', () => {
  const CACHED = { timeoutMs: 60_000 };

  test('rejects tokens until this API is back', { timeout: 300_000 }, async () => {
    const trust = { flags: ['signed-tokens.flags'], files: ['authentication.yaml'] };
    await using cluster = await TrustingCluster.start(platform, trust);
    const token = await platform.token(await platform.key('ci.yaml', 'restart'));
    expect(await cluster.kubectl(token, 'get pods')).toSatisfy(works);
    await platform.end();
    try {
      expect(await cluster.kubectl(token, 'get pods')).toSatisfy(works);
      await cluster.restart();
      expect(await cluster.kubectl(token, 'get pods')).toSatisfy(isUnauthorized);
    } finally {
      await platform.begin();
    }
    expect(await eventually(() => cluster.kubectl(token, 'get pods'), works, CACHED)).toSatisfy(works);
  });

  test('accepts tokens with the documented copies of the documents', { timeout: 300_000 }, async () => {
    await using copies = await StaticServer.start(platform);
    const trust: Trust = {
      flags: ['signed-tokens.flags'],
      files: ['authentication.yaml'],
      replace: (text) => copies.inPlaceOf(platform, text),
    };
    await using cluster = await TrustingCluster.start(platform, trust);
    const token = await platform.token(await platform.key('ci.yaml', 'static'));
    expect(await eventually(() => cluster.kubectl(token, 'get pods'), works, CACHED)).toSatisfy(works);
    await platform.end();
    try {
      await cluster.restart();
      expect(await eventually(() => cluster.kubectl(token, 'get pods'), works, CACHED)).toSatisfy(works);
    } finally {
      await platform.begin();
    }
  });
});

/** The static HTTPS server of the page, `keys.example.com`, with an authority of its own. */
class StaticServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #authority: string;
  readonly #server: Server;
  readonly #url: string;

  /** Serves what the commands of the page copy. */
  static async start(of: Platform): Promise<StaticServer> {
    const folder = of.folderWith(['openid-configuration', 'copy-keys.sh']);
    const { pair, authority } = await selfSigned(join(folder, 'data'), ['127.0.0.1'], Date.now());
    const server = createServer(pair, ({ url = '' }, response) => {
      const file = ['/openid-configuration', '/jwks'].find((path) => path === url);
      if (file === undefined) response.writeHead(404).end();
      else response.end(readFileSync(join(folder, file)));
    });
    const url = `https://127.0.0.1:${await listen(server)}`;
    const discovery = join(folder, 'openid-configuration');
    writeFileSync(discovery, readFileSync(discovery, 'utf8').replace(PAGE_SERVER, url));
    await promisify(execFile)('sh', ['-e', 'copy-keys.sh'], { cwd: folder });
    return new StaticServer(folder, authority, server, url);
  }

  private constructor(folder: string, authority: string, server: Server, url: string) {
    this.#folder = folder;
    this.#authority = authority;
    this.#server = server;
    this.#url = url;
  }

  /** The file with the documented `discoveryURL`, and the authority of this server in place of the API's. */
  inPlaceOf(api: Platform, text: string): string {
    const line = api.block('static-discovery.yaml').replace(PAGE_SERVER, this.#url);
    const indented = (pem: string): string => pem.trim().replaceAll(/^/gmu, ' '.repeat(6));
    return text.replace(/^ *discoveryURL: .*\n/mu, line).replace(indented(api.ca), indented(this.#authority));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true });
  }
}
