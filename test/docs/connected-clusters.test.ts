/** The files of `docs/keys/connected-clusters.md` for a kube-apiserver: one for each version, and the audiences of this program. */

import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { clusterAudience, TOKEN_AUDIENCE } from '../../src/access-keys/identity.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';

const BLOCKS = documentedBlocks('keys/connected-clusters.md');
const GROUP = 'apiserver.config.k8s.io';
const OLDER = '-v1beta1.yaml';
const FILES = [...BLOCKS].filter(([, text]) => text.startsWith(`apiVersion: ${GROUP}/`));
const NEWER = FILES.filter(([name]) => !name.endsWith(OLDER));

test('every file has an older form, and nothing but its first line differs', () => {
  expect(NEWER.map(([name]) => name)).toEqual([
    'authentication.yaml',
    'authentication-with-reviews.yaml',
    'authorization.yaml',
  ]);
  expect(FILES).toHaveLength(2 * NEWER.length);
  for (const [name, text] of NEWER) {
    const expected = text.replace(`apiVersion: ${GROUP}/v1\n`, `apiVersion: ${GROUP}/v1beta1\n`);
    expect(expected).not.toBe(text);
    expect(BLOCKS.get(name.replace('.yaml', OLDER))).toBe(expected);
  }
});

test('the files list the common audience and that of the cluster, the flags that of the cluster', () => {
  const files = FILES.map(([, text]) => parse(text) as { jwt?: { issuer: object }[] });
  const issuers = files.flatMap(({ jwt = [] }) => jwt.map(({ issuer }) => issuer));
  expect(issuers).toHaveLength(4);
  for (const issuer of issuers) {
    expect(issuer).toMatchObject({
      audiences: [TOKEN_AUDIENCE, clusterAudience('cluster-a')],
      audienceMatchPolicy: 'MatchAny',
    });
  }
  expect(BLOCKS.get('oidc.flags')).toContain(`--oidc-client-id=${clusterAudience('cluster-a')}\n`);
});
