/** The validation rules for patched Endpoints and EndpointSlices accept and reject exactly what a real kube-apiserver does. */

import { readFileSync } from 'node:fs';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import {
  BAD_IPS,
  changed,
  GOOD_IPS,
  REFUSED,
  SLICE_ADDRESSES,
  SLICE_REFUSED,
  SLICE_TAKEN,
  TAKEN,
  VALID_SLICE,
} from '../syncer/patch/endpoint-rules.ts';
import { suiteClusters } from './suite-clusters.ts';

let agent: Agent;

beforeAll(() => {
  agent = new Agent({ connect: { ca: readFileSync(suiteClusters().virtual.caFile, 'utf8') } });
});

afterAll(() => agent.close());

/** Status code of a create request with dryRun=All. */
async function create(object: JsonObject, path = 'api/v1/namespaces/default/endpoints'): Promise<number> {
  const { url, token } = suiteClusters().virtual;
  const response = await fetch(`${url}/${path}?dryRun=All`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(object),
    dispatcher: agent,
  });
  await response.text();
  return response.status;
}

// A new object may have another name or kind; the result of a patch may not.
const IDENTITY = ['apiVersion', 'kind', 'name', 'namespace'];
const invalid = REFUSED.filter(([path]) => !IDENTITY.includes(String(path.at(-1))) || path.length > 2);

describe('a kube-apiserver', () => {
  test.each(invalid)('rejects %j = %j', async (path, value) => {
    expect([400, 422]).toContain(await create(changed(path, value)));
  });

  test.each(TAKEN)('accepts %j = %j', async (path, value) => {
    expect(await create(changed(path, value))).toBe(201);
  });

  test('accepts and rejects the same addresses', async () => {
    const ip = ['subsets', 1, 'addresses', 0, 'ip'];
    const accepted: string[] = [];
    const all = [...GOOD_IPS, ...BAD_IPS.map(([bad]) => bad)];
    for (const address of all) if ((await create(changed(ip, address))) === 201) accepted.push(address);
    expect(accepted).toEqual(GOOD_IPS);
  });

  describe('of EndpointSlices', () => {
    const createSlice = (slice: JsonObject): Promise<number> =>
      create(slice, 'apis/discovery.k8s.io/v1/namespaces/default/endpointslices');

    test.each(SLICE_REFUSED)('rejects %j = %j', async (path, value) => {
      expect([400, 422]).toContain(await createSlice(changed(path, value, VALID_SLICE)));
    });

    test.each(SLICE_TAKEN)('accepts %j = %j', async (path, value) => {
      expect(await createSlice(changed(path, value, VALID_SLICE))).toBe(201);
    });

    test.each(SLICE_ADDRESSES)(
      'accepts and rejects the same addresses of type %s',
      async (addressType, good, bad) => {
        const accepted: string[] = [];
        for (const address of [...good, ...bad]) {
          const endpoints = [{ addresses: [address] }];
          if ((await createSlice({ ...VALID_SLICE, addressType, endpoints })) === 201) accepted.push(address);
        }
        expect(accepted).toEqual(good);
      },
    );
  });
});
