/** The worked cases about what an API server does with any kind, on a kind that is not built in. */

import { describe, expect, test } from 'vitest';
import { accessKeyTable } from './access-key-kind.ts';
import { differences, MANAGEMENT_CASES, Run } from './case-runner.ts';
import { startMachinery } from './machinery.ts';

/** Groups that are about the two resources themselves or about who may use them: not the machinery. */
const OTHER_GROUPS = ['auth', 'token', 'platform'];

/** Told in words, or not what this machinery does; each with the reason, or the test that shows it. */
const NOT_AS_THEY_ARE: Record<string, string> = {
  'create-generate-name-conflict': 'needs a server whose suffix is fixed: machinery.test.ts',
  'create-malformed-json': 'the body is not printed: an error names fields, never the whole object',
  'create-json-array': 'the body is not printed: an error names fields, never the whole object',
  'create-ownerref-no-uid': 'kube-apiserver 1.36 says "must not be empty" without the field',
  'create-ownerref-no-name': 'kube-apiserver 1.36 says "must not be empty" without the field',
  'create-ownerref-block-owner-deletion':
    'an admission rule of the key API, which is not part of the machinery',
  'get-accept-protobuf-only': 'the 406 comes as JSON: nothing here writes protobuf',
  'put-no-rv': 'kube-apiserver 1.36 prints the missing version as 0, not 0x0',
  'put-deletion-timestamp': 'kube-apiserver 1.36 prints the time as JSON',
  'put-uid-mismatch': 'our message, without the storage key, is asserted in machinery.test.ts',
  'json-patch-add-annotation-no-parent': 'the map of annotations is made: the documented example must run',
  'json-patch-status-ignored': 'nothing changes here, so nothing is written and the version stays',
  'json-patch-wrong-type': 'our message is asserted in machinery.test.ts',
  'json-patch-kind': 'our message is asserted in machinery.test.ts',
  'merge-patch-unknown-strict': 'our message is asserted in machinery.test.ts',
  api: 'there is no core group here, so the path is not found: a Status with 404',
};

const GENERIC = MANAGEMENT_CASES.filter(({ group }) => !OTHER_GROUPS.includes(group));

/** Cases whose steps are told in words, and the test that does what they tell. */
const IN_WORDS: Record<string, string> = {
  'list-continue-expired': 'machinery.test.ts, lists',
  'list-continue-snapshot': 'machinery.test.ts, lists',
  'watch-lifecycle': 'watch-contract.ts',
  'watch-selector-leave-enter': 'watch-contract.ts',
  'watch-timeout': 'watch-contract.ts',
  'watch-table': 'watch-contract.ts',
  'status-write-bumps-rv':
    'the key API keeps lastActivity apart; that the status is a write like any other: machinery.test.ts',
  'managedfields-cap': 'machinery.test.ts, field managers',
  'apply-multi-conflict': 'machinery.test.ts, field managers',
  'grace-shorten': 'machinery.test.ts, graceful deletion',
  'grace-lengthen-ignored': 'machinery.test.ts, graceful deletion',
  'grace-zero-removes': 'machinery.test.ts, graceful deletion',
  'grace-finalizer-removed-before-deadline': 'machinery.test.ts, graceful deletion',
  'blockownerdeletion-admission': 'an admission rule of the key API, which is not part of the machinery',
};

describe('worked cases of any kind', () => {
  const leftOut = { ...NOT_AS_THEY_ARE, ...IN_WORDS };
  const running = GENERIC.filter(({ id }) => !Object.hasOwn(leftOut, id));

  test('those left out are exactly those with a reason', () => {
    const known = new Set(GENERIC.map(({ id }) => id));
    expect(Object.keys(leftOut).filter((id) => !known.has(id))).toEqual([]);
    expect(running.length + Object.keys(leftOut).length).toBe(GENERIC.length);
  });

  test.each(running.map((item) => [item.id, item] as const))('%s', async (_id, item) => {
    await using machinery = await startMachinery({ table: accessKeyTable() });
    const run = new Run(machinery.client);
    for (const step of item.given ?? []) await run.send(step);
    const answer = await run.send(item.request);
    expect(differences(answer, item, run)).toEqual([]);
    for (const [what, status] of Object.entries(item.ours ? {} : (item.after ?? {}))) {
      const name = what.split(' ')[1] ?? '';
      const path = `/apis/management.platform.sh/v1/ownedaccesskeys/${name}`;
      expect((await machinery.client.send({ method: 'GET', path })).status).toBe(status);
    }
  });
});
