/** The identity of an object: what a body may say about it. */

import { expect, test } from 'vitest';
import { textAt } from '../../support/cases.ts';
import { Keys, metadata } from '../key-requests.ts';

test('an invalid namespace of a cluster-scoped object is an error; a valid one is ignored', async () => {
  await using keys = await Keys.open();
  const wrong = await keys.create('k', { namespace: 'Bad_NS' });
  expect(wrong.status).toBe(400);
  expect(textAt(wrong.json ?? {}, 'message')).toMatch(/^metadata\.namespace: Invalid value: "Bad_NS": /);
  expect((await keys.create('k', { namespace: 'default' })).status).toBe(201);
});

test('the error of a uid precondition names both uids', async () => {
  await using keys = await Keys.open();
  const created = await keys.create('k');
  const [uid, resourceVersion] = [
    textAt(metadata(created), 'uid'),
    textAt(metadata(created), 'resourceVersion'),
  ];
  const answer = await keys.send('PUT', '/k', {
    metadata: { name: 'k', uid: 'x', resourceVersion },
  });
  expect(answer.json).toMatchObject({
    code: 409,
    message: `Operation cannot be fulfilled on ownedaccesskeys.management.platform.sh "k": Precondition failed: UID in precondition: x, UID in object meta: ${uid}`,
  });
});
