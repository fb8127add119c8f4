/** Names that the server generates. */

import { describe, expect, test } from 'vitest';
import { Keys } from '../key-requests.ts';

describe('names', () => {
  test('that are generated are retried a limited number of times', async () => {
    await using keys = await Keys.open({ random: () => 0 });
    expect((await keys.create('ci-bbbbb')).status).toBe(201);
    const answer = await keys.send('POST', '', { metadata: { generateName: 'ci-' } });
    expect(answer.json).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message:
        'ownedaccesskeys.management.platform.sh "ci-bbbbb" already exists, the server was not able to generate a unique name for the object',
      details: { retryAfterSeconds: 1 },
    });
  });
});
