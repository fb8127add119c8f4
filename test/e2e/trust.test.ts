/**
 * A real kube-apiserver trusts the key API, in each of the ways that `docs/keys/connected-clusters.md` shows, with the files and flags that are
 * written there.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Platform, TrustingCluster, type Output, type Trust } from './trust-clusters.ts';

/** Longer than all caches of a kube-apiserver together. */
const FORGOTTEN = { timeoutMs: 60_000 };
/** Longer than a kubectl takes on a busy machine. */
const SHORT = { ttl: 20 };
const REACHES_B = { scope: { clusters: [{ cluster: 'cluster-b' }] } };

const SIGNED: Trust = { flags: ['signed-tokens.flags'], files: ['authentication.yaml'] };
/** The file for access reviews. */
const SIGNED_WITH_REVIEWS: Trust = {
  flags: ['signed-tokens-with-reviews.flags'],
  files: ['authentication-with-reviews.yaml'],
};
const REVIEWED: Trust = { flags: ['token-reviews.flags'], files: ['tokenreviews.kubeconfig'] };

let platform: Platform;

beforeAll(async () => {
  platform = await Platform.start();
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

function together(...ways: readonly Trust[]): Trust {
  return { flags: ways.flatMap(({ flags }) => flags), files: ways.flatMap(({ files }) => files) };
}

function cluster(trust: Trust): () => TrustingCluster {
  let running: TrustingCluster | undefined;
  beforeAll(async () => {
    running = await TrustingCluster.start(platform, trust);
  });
  afterAll(async () => {
    await running?.[Symbol.asyncDispose]();
  });
  return () => {
    if (!running) throw new Error('the cluster did not start');
    return running;
  };
}

const isUnauthorized = ({ code, err }: Output): boolean => code === 1 && err.includes('Unauthorized');
const isForbidden = ({ code, err }: Output): boolean => code === 1 && err.includes('Forbidden');
const works = { code: 0, out: '', err: 'No resources found in default namespace.\n' };

interface Whoami {
  readonly username: string;
  readonly groups: string[];
  readonly extra: Record<string, string[]>;
}

async function whoami(of: TrustingCluster, token: string): Promise<Whoami> {
  const { out } = await of.kubectl(token, 'auth whoami -o json');
  return (JSON.parse(out) as { status: { userInfo: Whoami } }).status.userInfo; // a SelfSubjectReview
}

describe('signed tokens', () => {
  const a = cluster(SIGNED);
  let key: string;

  beforeAll(async () => {
    key = await platform.key('ci.yaml', 'signed');
  });

  test('the commands of the page print the documented output', async () => {
    const { printed, documented } = await a().commands(platform, 'commands');
    expect(printed).toBe(documented);
  });

  test('a token works inside its scope, with the rights of its user', async () => {
    const token = await platform.token(key);
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    expect(await a().kubectl(token, 'get secrets')).toSatisfy(isForbidden);
    expect(await whoami(a(), token)).toEqual({
      username: 'alice',
      groups: ['system:authenticated'],
      extra: {
        'authentication.kubernetes.io/credential-id': [expect.stringMatching('^JTI=')],
        'platform.sh/key-uid': [expect.any(String)],
        'platform.sh/key-name': ['signed'],
        'platform.sh/generation': ['1'],
        'platform.sh/scope': ['{"clusters":[{"cluster":"cluster-a"}]}'],
      },
    });
  });

  test('a token without a scope works, and has no scope in its extras', async () => {
    const token = await platform.token(await platform.key('ci.yaml', 'signed-free', { scope: null }));
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    const { extra } = await whoami(a(), token);
    expect(Object.keys(extra)).toContain('platform.sh/key-uid');
    expect(Object.keys(extra)).not.toContain('platform.sh/scope');
  });

  test('outside its scope it is not authenticated', async () => {
    const other = await platform.key('ci.yaml', 'signed-b', REACHES_B);
    expect(await a().kubectl(await platform.token(other), 'get pods')).toSatisfy(isUnauthorized);
    const nothing = await platform.token(key, { scope: {} });
    expect(await a().kubectl(nothing, 'get pods')).toSatisfy(isUnauthorized);
    const projects = await platform.key('ci.yaml', 'signed-p', { scope: { projects: [{ project: '*' }] } });
    expect(await a().kubectl(await platform.token(projects), 'get pods')).toSatisfy(isUnauthorized);
  });

  test('a key cannot have users and groups of the cluster itself', async () => {
    const master = { user: 'system:admin', groups: ['system:masters'], scope: null };
    const token = await platform.token(await platform.key('ci.yaml', 'signed-system', master));
    expect(await a().kubectl(token, 'get pods')).toSatisfy(isUnauthorized);
  });

  test('an access key itself is not accepted', async () => {
    expect(await a().kubectl(key, 'get pods')).toSatisfy(isUnauthorized);
  });

  test('a token is rejected after its expiry', async () => {
    const token = await platform.token(key, SHORT);
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    await eventually(() => a().kubectl(token, 'get pods'), isUnauthorized, FORGOTTEN);
  });

  test('a removed signing key is accepted until the file of the cluster changes, be it a comment', async () => {
    const [before, unused] = [await platform.token(key), await platform.token(key)];
    expect(await a().kubectl(before, 'get pods')).toEqual(works);
    await platform.replaceSigningKey();
    expect(await a().kubectl(unused, 'get pods')).toEqual(works);
    a().addComment('authentication.yaml');
    await eventually(() => a().kubectl(unused, 'get pods'), isUnauthorized, FORGOTTEN);
    expect(await a().kubectl(await platform.token(key), 'get pods')).toEqual(works);
  });

  test('a token works while the API is down', async () => {
    const token = await platform.token(key);
    await platform.end();
    try {
      expect(await a().kubectl(token, 'get pods')).toEqual(works);
    } finally {
      await platform.begin();
    }
  });
});

describe('token reviews', () => {
  const a = cluster(REVIEWED);

  test('keys and tokens work inside their scope and are not authenticated outside', async () => {
    const key = await platform.key('ci.yaml', 'reviewed');
    for (const credential of [key, await platform.token(key)]) {
      expect(await a().kubectl(credential, 'get pods')).toEqual(works);
      expect(await a().kubectl(credential, 'get secrets')).toSatisfy(isForbidden);
    }
    const other = await platform.key('ci.yaml', 'reviewed-b', REACHES_B);
    for (const credential of [other, await platform.token(other), await platform.token(key, { scope: {} })]) {
      expect(await a().kubectl(credential, 'get pods')).toSatisfy(isUnauthorized);
    }
  });

  test('a wrong key is not authenticated', async () => {
    expect(await a().kubectl('pak_nobody', 'get pods')).toSatisfy(isUnauthorized);
  });

  test('expired tokens and disabled keys are rejected', async () => {
    const key = await platform.key('ci.yaml', 'reviewed-short');
    const [short, long] = [await platform.token(key, SHORT), await platform.token(key)];
    for (const credential of [short, long, key]) {
      expect(await a().kubectl(credential, 'get pods')).toEqual(works);
    }
    await eventually(() => a().kubectl(short, 'get pods'), isUnauthorized, FORGOTTEN);
    expect(await a().kubectl(long, 'get pods')).toEqual(works);
    await platform.disable('reviewed-short');
    await Promise.all(
      [long, key].map((credential) =>
        eventually(() => a().kubectl(credential, 'get pods'), isUnauthorized, FORGOTTEN),
      ),
    );
  });
});

/** A token review accepts these rules as access to the cluster; only an access review enforces them. */
const ONLY_LIST = {
  scope: { rules: [{ requestTargets: ['Cluster'], cluster: 'cluster-a', verbs: ['list'] }] },
};

describe.each<[string, Trust]>([
  [
    'file',
    { flags: ['access-reviews-file.flags'], files: ['authorization.yaml', 'accessreviews.kubeconfig'] },
  ],
  ['flags', { flags: ['access-reviews.flags'], files: ['accessreviews.kubeconfig'] }],
])('access reviews by %s', (how, reviews) => {
  const a = cluster(together(SIGNED_WITH_REVIEWS, REVIEWED, reviews));
  const name = (what: string): string => `${how}-${what}`;

  test('inside the scope RBAC decides', async () => {
    const token = await platform.token(await platform.key('ci.yaml', name('inside')));
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    expect(await a().kubectl(token, 'get secrets')).toSatisfy(isForbidden);
  });

  test('an administrator of the platform may do everything inside its scope', async () => {
    const key = await platform.key('ci.yaml', name('admin'), { user: 'root', groups: ['platform:admins'] });
    const { code, err } = await a().kubectl(await platform.token(key), 'get secrets');
    expect([code, err]).toEqual([0, expect.stringContaining('No resources found')]);
  });

  test('outside the scope the request is denied, whatever RBAC says', async () => {
    const key = await platform.key('ci.yaml', name('rules'), ONLY_LIST);
    expect(await a().kubectl(key, 'get pods')).toEqual(works);
    const denied = await a().kubectl(key, 'get pod some');
    expect(denied).toSatisfy(isForbidden);
    expect(denied.err).toContain('scope');
  });

  test('with the documented key that has only rules, kubectl with an empty cache can make the allowed requests', async () => {
    const token = await platform.token(await platform.key('rules-only.yaml', name('rules-only')));
    expect(await a().kubectlWithoutCache(token, 'get pods')).toEqual(works);
    const nodes = await a().kubectlWithoutCache(token, 'get nodes');
    expect([isForbidden(nodes), nodes.err]).toEqual([
      true,
      expect.stringContaining('does not allow this resource'),
    ]);
    const deletion = await a().kubectlWithoutCache(token, 'delete pod some');
    expect([isForbidden(deletion), deletion.err]).toEqual([
      true,
      expect.stringContaining('does not allow this verb'),
    ]);
  });

  test('a signed token is rejected after its key is disabled', async () => {
    const token = await platform.token(await platform.key('ci.yaml', name('disabled')));
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    await platform.disable(name('disabled'));
    const refused = await eventually(() => a().kubectl(token, 'get pods'), isForbidden, FORGOTTEN);
    expect(refused.err).toContain('the access key is disabled');
  });

  test('a token is rejected after its expiry', async () => {
    const token = await platform.token(await platform.key('ci.yaml', name('short')), SHORT);
    expect(await a().kubectl(token, 'get pods')).toEqual(works);
    await eventually(() => a().kubectl(token, 'get pods'), isUnauthorized, FORGOTTEN);
  });

  test('are rejected or kept while the API is down', async () => {
    const token = await platform.token(await platform.key('ci.yaml', name('away')));
    await platform.end();
    try {
      const answer = await a().kubectl(token, 'get pods');
      expect(answer.code).toBe(how === 'file' ? 1 : 0);
    } finally {
      await platform.begin();
    }
  });
});
