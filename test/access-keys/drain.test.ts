/** Shutdown of the API: requests in flight are completed, watches are ended. */

import { expect, test, vi } from 'vitest';
import { KEYS_PATH, startComposed } from './composed-api.ts';

test('requests in flight are completed, idle connections and watches are closed', async () => {
  const api = await startComposed();
  const body = { spec: { displayName: 'D', ttl: 0, type: 'User', user: 'u' } };
  const creates = Array.from({ length: 50 }, (_, index) =>
    api.administrator.send({
      method: 'POST',
      path: KEYS_PATH,
      body: { ...body, metadata: { name: `k${index}` } },
    }),
  );
  const { client } = await api.key('idle');
  await client.send({ method: 'GET', path: KEYS_PATH });
  await creates[0];
  // The limit after which the server closes every connection is not reached.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    await api.api[Symbol.asyncDispose]();
  } finally {
    vi.useRealTimers();
  }
  const answers = await Promise.allSettled(creates);
  const codes = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : 0));
  // Requests that had not arrived when the server stopped are refused; requests that had arrived get a response.
  expect([...new Set(codes)].filter((code) => code !== 0)).toEqual([201]);
  await api[Symbol.asyncDispose]();
});
