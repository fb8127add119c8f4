/** Credentials in the texts of the audit log. */

import { expect, test } from 'vitest';
import { masked } from '../../../src/apiserver/request/request-info.ts';

const KEY = 'pak_0123456789ab_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ012345';
const JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJlLW9mLTY0LWJ5dGVz';

test.each([
  ['a path', `/apis/g/v1/ownedaccesskeys/${KEY}`, '/apis/g/v1/ownedaccesskeys/[masked]'],
  ['a query', `/version?x=${JWT}&y=1`, '/version?x=[masked]&y=1'],
  ['a text', `a.${KEY}.${JWT}, then ${KEY}`, 'a.[masked].[masked], then [masked]'],
  ['a parameter', '/version?access_token=plain&y=1', '/version?access_token=[masked]&y=1'],
  ['escapes that hide it', `/x/${KEY.replace('pak_', '%70a%6B%5f')}`, '/x/[masked]'],
  ['escapes all over', `/x/${Buffer.from(JWT).toString('hex').replaceAll(/../g, '%$&')}`, '/x/[masked]'],
])('%s with a credential is masked', (_where, text, shown) => {
  expect(masked(text)).toBe(shown);
});

test.each([
  '/apis/apps/v1?labelSelector=a%3Db%2Cc%20in%20%28d%29',
  '/api/v1/keys/packet',
  '/%e2%82%ac?limit=5',
  'MonkeyIndexer/1.0 (eyJh.x)',
])('text that is not a credential is not masked: %s', (text) => {
  expect(masked(text)).toBe(text);
});

test('a long text that could begin anywhere is read once', () => {
  const text = 'eyIk_l_a'.repeat(125_000);
  expect(masked(text)).toBe(text);
});
