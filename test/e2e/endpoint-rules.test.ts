/** The rules by which patched Endpoints are refused are those of a real kube-apiserver: nothing more, nothing less. */

import { readFileSync } from 'node:fs';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { BAD_IPS, changed, GOOD_IPS, REFUSED, TAKEN } from '../syncer/patch/endpoint-rules.ts';

let agent: Agent;

beforeAll(() => {
  agent = new Agent({ connect: { ca: readFileSync(inject('clusters').virtual.caFile, 'utf8') } });
});

afterAll(() => agent.close());

/** The status code of a creation that is not kept. */
async function create(object: JsonObject): Promise<number> {
  const { url, token } = inject('clusters').virtual;
  const response = await fetch(`${url}/api/v1/namespaces/default/endpoints?dryRun=All`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(object),
    dispatcher: agent,
  });
  await response.text();
  return response.status;
}

// Another name or kind is fine for a new object, only not for a patch.
const IDENTITY = ['apiVersion', 'kind', 'name', 'namespace'];
const invalid = REFUSED.filter(([path]) => !IDENTITY.includes(String(path.at(-1))) || path.length > 2);

describe('a kube-apiserver', () => {
  test.each(invalid)('refuses %j = %j', async (path, value) => {
    expect([400, 422]).toContain(await create(changed(path, value)));
  });

  test.each(TAKEN)('takes %j = %j', async (path, value) => {
    expect(await create(changed(path, value))).toBe(201);
  });

  test('takes and refuses the same addresses', async () => {
    const ip = ['subsets', 1, 'addresses', 0, 'ip'];
    const taken: string[] = [];
    const all = [...GOOD_IPS, ...BAD_IPS.map(([bad]) => bad)];
    for (const one of all) if ((await create(changed(ip, one))) === 201) taken.push(one);
    expect(taken).toEqual(GOOD_IPS);
  });
});
