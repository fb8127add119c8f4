/** The files of `docs/keys/connected-clusters.md` for a kube-apiserver: what its commands make of them, and the audiences of this program. */

import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { clusterAudience, TOKEN_AUDIENCE } from '../../src/access-keys/identity.ts';
import { connectedClusterBlocks } from '../e2e/connected-cluster-blocks.ts';

const BLOCKS = connectedClusterBlocks(false);
const GROUP = 'apiserver.config.k8s.io';
const FILES = ['authentication.yaml', 'authentication-with-reviews.yaml', 'authorization.yaml'];
const textOf = (name: string, blocks = BLOCKS): string => blocks.get(name) ?? '';

test('every file has an older form, and nothing but its first line differs', () => {
  const older = connectedClusterBlocks(true);
  for (const name of FILES) {
    const expected = textOf(name).replace(`apiVersion: ${GROUP}/v1\n`, `apiVersion: ${GROUP}/v1beta1\n`);
    expect(expected).not.toBe(textOf(name));
    expect(textOf(name, older)).toBe(expected);
  }
});

test('the file for access reviews has all but the rule about the scope, their kubeconfig another path', () => {
  type Authentication = { jwt: Record<string, unknown>[] };
  const read = (name: string): Authentication => parse(textOf(name)) as Authentication; // our own page
  const [{ claimValidationRules, ...others } = {}] = read('authentication.yaml').jwt;
  expect(claimValidationRules).toHaveLength(1);
  expect(read('authentication-with-reviews.yaml').jwt).toEqual([others]);
  const [tokens, access] = [
    'authentication.k8s.io/v1/tokenreviews',
    'authorization.k8s.io/v1/subjectaccessreviews',
  ];
  const expected = textOf('tokenreviews.kubeconfig').replace(tokens, access);
  expect(expected).toContain(access);
  expect(textOf('accessreviews.kubeconfig')).toBe(expected);
});

test('the files list the common audience and that of the cluster, the flags that of the cluster', () => {
  const files = FILES.map((name) => parse(textOf(name)) as { jwt?: { issuer: object }[] });
  const issuers = files.flatMap(({ jwt = [] }) => jwt.map(({ issuer }) => issuer));
  expect(issuers).toHaveLength(2);
  for (const issuer of issuers) {
    expect(issuer).toMatchObject({
      audiences: [TOKEN_AUDIENCE, clusterAudience('cluster-a')],
      audienceMatchPolicy: 'MatchAny',
    });
  }
  expect(BLOCKS.get('oidc.flags')).toContain(`--oidc-client-id=${clusterAudience('cluster-a')}\n`);
});
