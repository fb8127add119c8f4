/** Errors of an API server that a Secret names: what the program decides by is there, and nothing that the server wrote. */

import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { discreetClient } from '../../src/kube/discreet-client.ts';
import { ENDPOINTS } from '../../src/kube/object.ts';
import { isAnonymous, StatusError } from '../../src/kube/status-error.ts';
import { MalformedResponseError, MalformedStreamError, type WatchClient } from '../../src/kube/types.ts';
import { KEY, OBJECT, Wire, type Reply } from './client/wire.ts';

const SECRET = 'internal-page-1f3a';
const HANDLER = { started: () => undefined, dataReceived: () => undefined, event: () => undefined };
const WATCH = { resourceVersion: '1', timeoutSeconds: 60 };

const REQUESTS: Readonly<Record<string, (client: WatchClient) => Promise<unknown>>> = {
  get: (client) => client.get(ENDPOINTS, KEY),
  list: (client) => client.list(ENDPOINTS),
  watch: (client) => client.watch(ENDPOINTS, WATCH, HANDLER),
  create: (client) => client.create(ENDPOINTS, OBJECT),
  update: (client) => client.update(ENDPOINTS, OBJECT),
  patch: (client) => client.patch(ENDPOINTS, KEY, { type: 'merge', body: {} }),
  delete: (client) => client.delete(ENDPOINTS, KEY, {}),
};

function status(code: number, fields: object): string {
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, ...fields });
}

async function errorOf(send: (client: WatchClient) => Promise<unknown>, reply: Reply): Promise<Error> {
  await using wire = await Wire.open(reply, reply, reply, reply);
  const error: unknown = await send(discreetClient(wire.client(), 'Secret a/b')).catch(
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error(`no error: ${String(error)}`);
  return error;
}

const PAGES: Readonly<Record<string, Reply>> = {
  'a page': { code: 500, body: `<p>${SECRET}</p>` },
  'a Status': {
    code: 500,
    body: status(500, {
      message: SECRET,
      reason: SECRET,
      details: { name: SECRET, kind: SECRET, causes: [{ field: SECRET, reason: SECRET, message: SECRET }] },
    }),
  },
};
const SUCCESSES: Readonly<Record<string, Reply>> = {
  'a page with 200': { body: `${SECRET}\n` },
  'another object': { body: `{"kind":"${SECRET}","${SECRET}":"${SECRET}"}\n` },
  'an ERROR event': {
    body: `{"type":"ERROR","object":${status(500, { message: SECRET, reason: SECRET })}}\n`,
  },
};

describe.each(
  Object.entries({ ...REQUESTS, request: (client: WatchClient) => client.request('GET', '/version') }),
)('%s', (_name, send) => {
  test.each(Object.entries(PAGES))('of %s has the code alone', async (_, reply) => {
    const error = await errorOf(send, reply);
    expect(error).toMatchObject({ name: 'StatusError', code: 500 });
    expect(error.message).toMatch(/^the response to the .* is 500 (InternalError|Unknown)$/);
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });
});

describe.each(Object.entries(REQUESTS))('%s', (_name, send) => {
  test.each(Object.entries(SUCCESSES))('of %s says that it is malformed', async (_, reply) => {
    const error = await errorOf(send, reply);
    expect(error.message).toMatch(/^the response to the .* is (malformed|500 Unknown)$/);
    expect(
      [MalformedResponseError, MalformedStreamError, StatusError].some((one) => error instanceof one),
    ).toBe(true);
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });
});

test('rejected credentials are named', async () => {
  const { message } = await errorOf((client) => client.get(ENDPOINTS, KEY), {
    code: 401,
    body: status(401, { message: SECRET, reason: 'Unauthorized' }),
  });
  expect(message).toMatch(/ is 401 Unauthorized: the credentials of Secret a\/b are not accepted$/);
});

test('what the program decides by is kept', async () => {
  const terminating = await errorOf((client) => client.create(ENDPOINTS, OBJECT), {
    code: 403,
    headers: { 'retry-after': '7' },
    body: status(403, {
      reason: 'Forbidden',
      message: 'no: User "system:anonymous"',
      details: {
        kind: 'namespaces',
        causes: [{ reason: 'NamespaceTerminating' }, { field: 'metadata.uid' }],
      },
    }),
  });
  expect(terminating).toMatchObject({
    code: 403,
    reason: 'Forbidden',
    retryAfterMs: 7000,
    status: {
      details: {
        kind: 'namespaces',
        causes: [{ reason: 'NamespaceTerminating' }, { field: 'metadata.uid' }],
      },
    },
  });
  expect(terminating instanceof StatusError && isAnonymous(terminating)).toBe(true);
  const immutable = await errorOf((client) => client.update(ENDPOINTS, OBJECT), {
    code: 422,
    body: status(422, { reason: 'Invalid', message: `spec.${SECRET}: field is immutable` }),
  });
  expect(immutable.message).toBe(
    'the response to the update of endpoints is 422 Invalid: field is immutable',
  );
});
