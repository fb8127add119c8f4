/** The rules for Endpoints, EndpointSlices and Services accept and reject exactly what a real kube-apiserver does, and the embedded cluster answers in
 * its words. */

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import {
  BAD_IPS,
  BAD_RANGES,
  changed,
  GOOD_IPS,
  REFUSED,
  SERVICE_NAMES,
  SERVICE_REFUSED,
  SERVICE_TAKEN,
  SLICE_ADDRESSES,
  SLICE_REFUSED,
  SLICE_TAKEN,
  TAKEN,
  VALID_SERVICE,
  VALID_SLICE,
} from '../syncer/patch/endpoint-rules.ts';
import { minorVersion, NEWEST } from '../contract/golden.ts';
import { TestCluster } from '../embedded-cluster/test-cluster.ts';
import { suiteClusters } from './suite-clusters.ts';

let agent: Agent;
/** Such as 1.37. */
let version: string;

beforeAll(async () => {
  agent = new Agent({ connect: { ca: readFileSync(suiteClusters().virtual.caFile, 'utf8') } });
  version = minorVersion(await get('version'));
});

afterAll(() => agent.close());

const ENDPOINTS = 'api/v1/namespaces/default/endpoints';
const SLICES = 'apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const SERVICES = 'api/v1/namespaces/default/services';

/** Status code of a create request with dryRun=All. */
async function create(object: JsonObject, path = ENDPOINTS): Promise<number> {
  return (await send(object, path)).status;
}

async function send(object: JsonObject, path: string): Promise<{ status: number; body: Status }> {
  const { url, token } = suiteClusters().virtual;
  const response = await fetch(`${url}/${path}?dryRun=All`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(object),
    dispatcher: agent,
  });
  return { status: response.status, body: (await response.json()) as Status }; // of an API server
}

async function get(path: string): Promise<Record<string, unknown>> {
  const { url, token } = suiteClusters().virtual;
  const response = await fetch(`${url}/${path}`, {
    headers: { authorization: `Bearer ${token}` },
    dispatcher: agent,
  });
  return (await response.json()) as Record<string, unknown>; // of an API server
}

/** Whether a server of the version under test rejects what newer ones have rejected since `since`; undefined: every version does. */
function isRejected(since: string | undefined): boolean {
  const minorOf = (of: string): number => Number(of.split('.')[1]);
  return since === undefined || minorOf(since) <= minorOf(version);
}

function codesOf(isRejection: boolean): readonly number[] {
  return isRejection ? [400, 422] : [201];
}

interface Cause {
  readonly field?: string;
  readonly message: string;
}

interface Status {
  readonly details?: { readonly causes?: readonly Cause[] };
}

/** Which words of the newest version, in which field, an older one says how. */
const OLDER_WORDS: Readonly<
  Record<string, readonly (readonly [field: RegExp, newest: string, older: string])[]>
> = {
  // pkg/apis/discovery/validation/validation.go; since 1.37 pkg/apis/discovery/v1/zz_generated.validations.go.
  1.36: [
    [/^endpoints\[\d+\]\.addresses$/, 'Required value', 'Required value: must contain at least 1 address'],
  ],
};

function inWords(causes: unknown): unknown {
  const words = OLDER_WORDS[version] ?? [];
  if (!Array.isArray(causes)) return causes;
  return causes.map((cause: Cause) => {
    const same = words.find(([field, newest]) => field.test(cause.field ?? '') && newest === cause.message);
    return same === undefined ? cause : { ...cause, message: same[2] };
  });
}

// A new object may have another name or kind; the result of a patch may not.
const IDENTITY = ['apiVersion', 'kind', 'name', 'namespace'];
const invalid = REFUSED.filter(([path]) => !IDENTITY.includes(String(path.at(-1))) || path.length > 2);

describe('a kube-apiserver', () => {
  test.each(invalid)('rejects %j = %j', async (path, value, _, since) => {
    expect(codesOf(isRejected(since))).toContain(await create(changed(path, value)));
  });

  test.each(TAKEN)('accepts %j = %j', async (path, value) => {
    expect(await create(changed(path, value))).toBe(201);
  });

  test('accepts and rejects the same addresses', async () => {
    const ip = ['subsets', 1, 'addresses', 0, 'ip'];
    const accepted: string[] = [];
    const all = [...GOOD_IPS, ...BAD_IPS.map(([bad]) => bad)];
    for (const address of all) if ((await create(changed(ip, address))) === 201) accepted.push(address);
    const older = BAD_IPS.filter(([, , since]) => !isRejected(since));
    expect(accepted).toEqual([...GOOD_IPS, ...older.map(([bad]) => bad)]);
  });

  test.each(SERVICE_TAKEN)('accepts a Service with %j = %j', async (path, value, since) => {
    const { status } = await send(changed(path, value, VALID_SERVICE), SERVICES);
    expect(status === 201).toBe(since === undefined || isRejected(since));
  });

  test.each(SERVICE_NAMES)('accepts a Service with the name %s', async (name, since) => {
    const { status } = await send(changed(['metadata', 'name'], name, VALID_SERVICE), SERVICES);
    expect(status === 201).toBe(since === undefined || isRejected(since));
  });

  test.each(SERVICE_REFUSED)('rejects a Service with %j = %j', async (path, value) => {
    expect([400, 422]).toContain((await send(changed(path, value, VALID_SERVICE), SERVICES)).status);
  });

  test.each(BAD_RANGES)('rejects the range %s', async (range, _, since) => {
    const service = changed(['spec', 'loadBalancerSourceRanges'], [range], VALID_SERVICE);
    expect(codesOf(isRejected(since))).toContain((await send(service, SERVICES)).status);
  });

  describe('of EndpointSlices', () => {
    const createSlice = (slice: JsonObject): Promise<number> => create(slice, SLICES);

    test.each(SLICE_REFUSED)('rejects %j = %j', async (path, value) => {
      expect([400, 422]).toContain(await createSlice(changed(path, value, VALID_SLICE)));
    });

    test.each(SLICE_TAKEN)('accepts %j = %j', async (path, value) => {
      expect(await createSlice(changed(path, value, VALID_SLICE))).toBe(201);
    });

    test('keeps hints for nodes, or leaves them out before 1.34', async () => {
      const hints = { forNodes: [{ name: 'node' }] };
      const { body } = await send(changed(['endpoints', 0, 'hints'], hints, VALID_SLICE), SLICES);
      const isKept = JSON.stringify(body).includes('"forNodes":');
      expect(isKept).toBe(isRejected('1.34'));
    });

    test.each(SLICE_ADDRESSES)(
      'accepts and rejects the same addresses of type %s',
      async (addressType, good, bad) => {
        const accepted: string[] = [];
        for (const address of [...good, ...bad.map(([each]) => each)]) {
          const endpoints = [{ addresses: [address] }];
          if ((await createSlice({ ...VALID_SLICE, addressType, endpoints })) === 201) accepted.push(address);
        }
        const older = bad.filter(([, since]) => !isRejected(since));
        expect(accepted).toEqual([...good, ...older.map(([address]) => address)]);
      },
    );
  });
});

describe('the embedded cluster answers as a kube-apiserver', () => {
  const objects = [
    ...invalid.map(([path, value]) => ({ path: ENDPOINTS, object: changed(path, value) })),
    ...BAD_IPS.map(([ip]) => ({
      path: ENDPOINTS,
      object: changed(['subsets', 1, 'addresses', 0, 'ip'], ip),
    })),
    ...SLICE_REFUSED.map(([path, value]) => ({ path: SLICES, object: changed(path, value, VALID_SLICE) })),
    ...SLICE_ADDRESSES.flatMap(([addressType, , bad]) =>
      bad.map(([address]) => ({
        path: SLICES,
        object: { ...VALID_SLICE, addressType, endpoints: [{ addresses: [address] }] },
      })),
    ),
    ...SERVICE_REFUSED.map(([path, value]) => ({
      path: SERVICES,
      object: changed(path, value, VALID_SERVICE),
    })),
    ...BAD_RANGES.map(([range]) => ({
      path: SERVICES,
      object: changed(['spec', 'loadBalancerSourceRanges'], [range], VALID_SERVICE),
    })),
  ];

  test('for every object that is rejected', async ({ skip }) => {
    skip(version !== NEWEST && !(version in OLDER_WORDS), `its words are not known of ${version}`);
    await using cluster = await TestCluster.open();
    const different: unknown[] = [];
    for (const { path, object } of objects) {
      const real = causesOf(await send(object, path));
      const { status, json } = await cluster.send('POST', `/${path}?dryRun=All`, object);
      const embedded = inWords(causesOf({ status, body: json as Status })); // of an API server
      if (!isDeepStrictEqual(real, embedded)) different.push({ real, embedded });
    }
    expect(different).toEqual([]);
  });
});

/** Of a 400, the status alone; of several problems of one empty name, the first. A worked case has the length of a label in characters (`create-label-value-64`). */
function causesOf({ status, body }: { readonly status: number; readonly body: Status }): unknown {
  if (status !== 422) return status;
  return body.details?.causes
    ?.filter(({ message }) => !message.startsWith(SECOND_OF_EMPTY_NAME))
    .map((cause) => ({
      ...cause,
      message: cause.message.replace('no more than 63 bytes', 'no more than 63 characters'),
    }));
}

const SECOND_OF_EMPTY_NAME = 'Invalid value: "": name part must consist of';
