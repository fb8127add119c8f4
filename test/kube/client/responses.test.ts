/** What a response has to be, and the errors that error responses become. */

import { describe, expect, test } from 'vitest';
import { MalformedResponseError, type WatchClient } from '../../../src/kube/types.ts';
import { responseError } from '../../../src/kube/client/responses.ts';
import { ENDPOINTS, ENDPOINT_SLICES } from '../../../src/kube/object.ts';
import { Wire, objectAt, refusal, KEY, OBJECT } from './wire.ts';

describe('error responses', () => {
  test.each([
    [
      'HTML',
      502,
      '<html><script>evil()</script><body><b>Bad</b> gateway</body>',
      'InternalError',
      'Bad gateway',
    ],
    ['text', 403, 'go away', 'Forbidden', 'go away'],
    ['nothing', 404, '', 'NoStatus', 'without a Kubernetes Status'],
    ['JSON of something else', 418, '{"error":"teapot"}', 'NoStatus', 'teapot'],
    ['broken JSON', 500, '{"kind":"Stat', 'InternalError', 'Stat'],
    ['a flood', 503, `<p>${'x'.repeat(200_000)}`, 'ServiceUnavailable', 'xxx'],
  ])('that are %s are described', async (...row) => {
    const [, code, body, reason, excerpt] = row;
    await using wire = await Wire.open({ code, body });
    const error = await refusal(wire.client().get(ENDPOINTS, KEY, { isRetried: false }));
    expect([error.code, error.reason]).toEqual([code, reason]);
    expect(error.message).toContain(
      `the response to GET ${new URL(wire.url).host}/api/v1/namespaces/ns/endpoints/a is ${code}`,
    );
    expect(error.message).toContain(excerpt);
    expect(error.message).not.toContain('evil');
    expect(error.message.length).toBeLessThan(600);
  });

  test.each([
    ['seconds', () => '7', 7000],
    ['a date', () => new Date(Date.now() + 9500).toUTCString(), 9000],
    ['a date in the past', () => new Date(0).toUTCString(), 0],
    ['nonsense', () => 'soon', undefined],
    ['a negative number', () => '-5', undefined],
    ['a fraction', () => '1.5', undefined],
    ['an enormous number', () => '999999999999', 999_999_999_999_000],
  ])('with Retry-After as %s', async (_, header, expected) => {
    await using wire = await Wire.open({ code: 429, headers: { 'retry-after': header() } });
    const { retryAfterMs } = await refusal(wire.client().update(ENDPOINTS, OBJECT));
    expect(retryAfterMs === undefined ? undefined : Math.round(retryAfterMs / 3000)).toBe(
      expected === undefined ? undefined : Math.round(expected / 3000),
    );
  });
});

describe('the response', () => {
  test('a name that no server has to give', async () => {
    const uid = 'u'.repeat(513);
    const item = { metadata: { name: 'a', namespace: 'x', uid, resourceVersion: '1' } };
    const body = JSON.stringify({ metadata: { resourceVersion: '1' }, items: [item] });
    await using wire = await Wire.open({ body });
    await expect(wire.client().list(ENDPOINTS)).rejects.toThrow('metadata.uid has more than 512 characters');
  });

  test.each([
    ['no JSON', 'hello'],
    ['cut JSON', '{"metadata":{'],
    ['no object', '[]'],
    ['an object without metadata', '{}'],
  ])('a success that is %s', async (_, body) => {
    await using wire = await Wire.open({ body });
    await expect(wire.client().get(ENDPOINTS, KEY)).rejects.toBeInstanceOf(MalformedResponseError);
  });

  const stored = objectAt('/api/v1/namespaces/ns/endpoints/a');
  const foreign: [string, unknown][] = [
    ['of another kind', { ...stored, kind: 'Service' }],
    ['of another apiVersion', { ...stored, apiVersion: 'v2' }],
    ['without a kind', { ...stored, kind: undefined }],
    ['of another name', { ...stored, metadata: { ...stored.metadata, name: 'b' } }],
    ['of another namespace', { ...stored, metadata: { ...stored.metadata, namespace: 'other' } }],
    ['without a namespace', { ...stored, metadata: { ...stored.metadata, namespace: undefined } }],
    ['without a uid', { ...stored, metadata: { ...stored.metadata, uid: undefined } }],
    ['without a resourceVersion', { ...stored, metadata: { ...stored.metadata, resourceVersion: '' } }],
    ['with a version that is no text', { ...stored, metadata: { ...stored.metadata, resourceVersion: 7 } }],
    ['that is nested too deep to be written again', { ...stored, subsets: nested(501) }],
    ['that is a Status of failure', { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' }],
  ];
  const requests: Record<string, (client: WatchClient) => Promise<unknown>> = {
    get: (client) => client.get(ENDPOINTS, KEY),
    create: (client) => client.create(ENDPOINTS, OBJECT),
    update: (client) => client.update(ENDPOINTS, OBJECT),
    patch: (client) => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} }),
    delete: (client) => client.delete(ENDPOINTS, KEY, {}),
  };

  test.each(foreign)('to any request about an object is rejected when it is an object %s', async (...row) => {
    const body = JSON.stringify(row[1]);
    for (const [verb, act] of Object.entries(requests)) {
      await using wire = await Wire.open({ body });
      const error = await act(wire.client()).catch((reason: unknown) => reason);
      expect([verb, error]).toEqual([verb, expect.any(MalformedResponseError)]);
    }
  });

  test('to a deletion is a Status of success, or the object', async () => {
    const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
    for (const answer of [success, stored]) {
      await using wire = await Wire.open({ body: JSON.stringify(answer) });
      expect(await wire.client().delete(ENDPOINTS, KEY, {})).toBeUndefined();
    }
  });

  test('to a dry run needs no resourceVersion', async () => {
    const unstored = {
      ...stored,
      metadata: { ...stored.metadata, uid: undefined, resourceVersion: undefined },
    };
    for (const verb of ['create', 'update', 'patch'] as const) {
      await using wire = await Wire.open({ body: JSON.stringify(unstored) });
      const client = wire.client();
      const options = { isDryRun: true };
      const dryRuns = {
        create: () => client.create(ENDPOINTS, OBJECT, options),
        update: () => client.update(ENDPOINTS, OBJECT, options),
        patch: () => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} }, options),
      };
      expect((await dryRuns[verb]()).metadata.name).toBe('a');
      expect(wire.seen[0]?.url).toMatch(/\?dryRun=All$/);
    }
  });

  test('to a dry run of a deletion has the option in its body, from which kube-apiserver reads it', async () => {
    await using wire = await Wire.open({ body: JSON.stringify(stored) });
    await wire.client().delete(ENDPOINTS, KEY, { uid: 'u' }, { isDryRun: true });
    expect(JSON.parse(String(wire.seen[0]?.body))).toMatchObject({
      kind: 'DeleteOptions',
      dryRun: ['All'],
      preconditions: { uid: 'u' },
    });
  });
});

test('null for an empty list, as a kube-apiserver returns it, is the empty list', async () => {
  const metadata = { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1' };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    endpoints: null,
    ports: null,
  };
  const list = { metadata: { resourceVersion: '1' }, items: [{ metadata, endpoints: null, ports: [] }] };
  await using wire = await Wire.open({ body: JSON.stringify(slice) }, { body: JSON.stringify(list) });
  const client = wire.client();
  const empty = { endpoints: [], ports: [] };
  expect(await client.get(ENDPOINT_SLICES, { namespace: 'default', name: 'a' })).toMatchObject(empty);
  expect((await client.list(ENDPOINT_SLICES)).items).toMatchObject([empty]);
});

test('texts of a server are cut where they become an error', () => {
  const long = 'm'.repeat(1_000_000);
  const word = 'w'.repeat(1000);
  const causes = Array.from({ length: 100 }, () => ({ reason: word, message: word, field: word }));
  const details = { name: long, kind: long, causes, retryAfterSeconds: 3 };
  const text = JSON.stringify({
    kind: 'Status',
    code: 500,
    message: long,
    reason: long,
    details,
    metadata: { long },
  });
  const error = responseError({ status: 500, headers: {}, text }, 'GET /', 0);
  expect(error.message).toBe(`${'m'.repeat(2047)}…`);
  expect(error.retryAfterMs).toBe(3000);
  expect(JSON.stringify(error.status).length).toBeLessThan(12_000);
});

test.each([
  '{"kind":"Status","message":{"a":1},"reason":7,"code":"x","details":[],"status":5}',
  '{"kind":"Status"}',
])('a Status of other types has none of them: %s', (text) => {
  const { status } = responseError({ status: 500, headers: {}, text }, 'GET /', 0);
  expect(status).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 500 });
});

/** `levels` lists, one in the other. */
function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let at = 0; at < levels; at++) value = [value];
  return value;
}
