/** What the server does around each request: limits, rates, the audit log. */

import { describe, expect, test } from 'vitest';
import type { RequestLimits } from '../../../src/apiserver/http/client-limits.ts';
import type { AuditEvent } from '../../../src/apiserver/request/request-info.ts';
import { tooManyRequests } from '../../../src/apiserver/status.ts';
import { KEYS } from '../key-requests.ts';
import { accessKeyTable } from '../test-kinds.ts';
import { serversOfEachTest } from '../test-server.ts';

const start = serversOfEachTest(accessKeyTable);

test('the number of watches is limited, in total and per user', async () => {
  const api = await start({ watchesMax: 3, watchesPerUserMax: 2 });
  const watch = (user: string): Promise<AsyncDisposable & { status: number }> =>
    api.client.watch(`${KEYS}?watch=1&resourceVersion=0`, { authorization: `Bearer ${user}` });
  const ann = [await watch('ann'), await watch('ann'), await watch('ann')];
  const others = [await watch('bob'), await watch('cy')];
  expect([...ann, ...others].map(({ status }) => status)).toEqual([200, 200, 429, 200, 429]);
  await ann[0]?.[Symbol.asyncDispose]();
  await expect.poll(async () => (await watch('dan')).status).toBe(200);
});

describe('a throttle', () => {
  test('admits authenticated users, and counts failed authentication by address', async () => {
    const asked: string[] = [];
    const throttle: Pick<RequestLimits, keyof RequestLimits> = {
      admit: ({ name }, verb) => {
        asked.push(`${name} ${verb}`);
        if (verb === 'create') throw tooManyRequests('slower', 7);
      },
      refused: (address) => asked.push(address),
      isPrivileged: () => false,
    };
    const { client } = await start({
      throttle,
      authenticate: ({ authorization }) =>
        authorization ? { name: 'ann', uid: '', groups: [], extra: {} } : undefined,
    });
    const headers = { authorization: 'x' };
    await client.send({ method: 'GET', path: KEYS, headers });
    const refused = await client.send({ method: 'POST', path: KEYS, headers, body: {} });
    expect(refused.json).toMatchObject({ code: 429, details: { retryAfterSeconds: 7 } });
    expect(refused.headers.get('retry-after')).toBe('7');
    expect((await client.send({ method: 'GET', path: KEYS })).status).toBe(401);
    expect(asked).toEqual(['ann list', 'ann create', '127.0.0.1']);
  });
});

describe('the audit log', () => {
  test('gets every request once, a watch at its end, and every response has the id of its event', async () => {
    const events: AuditEvent[] = [];
    const api = await start({ audit: (event) => events.push(event) });
    const { client } = api;
    const created = await client.send({
      method: 'POST',
      path: KEYS,
      body: { metadata: { generateName: 'ci-' } },
    });
    const missing = await client.send({ method: 'GET', path: `${KEYS}/none` });
    const name = /"name":"(ci-\w+)"/.exec(created.text)?.[1];
    expect(events.map(({ auditID }) => auditID)).toEqual(
      [created, missing].map(({ headers }) => headers.get('audit-id')),
    );
    expect(events[0]).toMatchObject({
      verb: 'create',
      objectRef: { name },
      responseStatus: { code: 201 },
      sourceIPs: ['127.0.0.1'],
    });
    expect(events[1]).toMatchObject({
      verb: 'get',
      responseStatus: { code: 404 },
      annotations: { 'authorization.k8s.io/decision': 'allow' },
    });
    const requestURI = `${KEYS}?watch=1&resourceVersion=0`;
    const watch = await client.watch(requestURI);
    expect(events).toHaveLength(2);
    await watch[Symbol.asyncDispose]();
    await expect.poll(() => events).toHaveLength(3);
    expect(events[2]).toMatchObject({ verb: 'watch', requestURI, responseStatus: { code: 200 } });
  });
});
