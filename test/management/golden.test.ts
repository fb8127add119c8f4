/** Documents that a real API server gave for these kinds: ours have the same shape. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/lib/json.ts';
import { KEYS_PATH, startComposed, type Composed } from './composed.ts';

const GROUP = 'management.platform.sh';
const FOLDER = join(import.meta.dirname, '..', 'golden', 'management');

let api: Composed;
beforeAll(async () => {
  api = await startComposed();
  await api.key('my-access-key', { user: 'alice', ttl: 60 });
});
afterAll(() => api[Symbol.asyncDispose]());

function golden(name: string): JsonObject {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as JsonObject; // our own file
}

async function ours(path: string, accept = 'application/json'): Promise<JsonObject> {
  const { status, json } = await api.administrator.send({ method: 'GET', path, headers: { accept } });
  expect(status).toBe(200);
  return json ?? {};
}

/** Every place in a document with the type of what stands there; the elements of a list are one place. */
function shape(value: JsonValue, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => shape(item, `${at}[]`));
  if (!isJsonObject(value)) return [`${at}: ${value === null ? 'null' : typeof value}`];
  return Object.keys(value).flatMap((key) => shape(value[key] ?? null, `${at}.${key}`));
}

/** Places that only one of the two has. */
function differences(real: JsonValue, own: JsonValue): { missing: string[]; more: string[] } {
  const [a, b] = [new Set(shape(real)), new Set(shape(own))];
  return {
    missing: [...a].filter((place) => !b.has(place)),
    more: [...b].filter((place) => !a.has(place)),
  };
}

/** The entry of our group in a list of groups; the reviews are groups of their own. */
function groupIn(document: JsonObject, list: string): JsonValue {
  const entries = document[list];
  const isOurs = (entry: JsonValue): boolean =>
    isJsonObject(entry) && JSON.stringify(entry).includes(`"name":"${GROUP}"`);
  return Array.isArray(entries) ? entries.filter(isOurs) : [];
}

const SAME = { missing: [], more: [] };

describe('discovery', () => {
  test('groups', async () => {
    const [real, own] = [golden('apis.APIGroupList'), await ours('/apis')];
    const head = (document: JsonObject): JsonValue => ({ ...document, groups: [] });
    expect(differences(head(real), head(own)).missing).toEqual([]);
    // A kube-apiserver, whose aggregator answers here, leaves the addresses out as well.
    expect(differences(groupIn(real, 'groups'), groupIn(own, 'groups')).missing).toEqual([
      '[].serverAddressByClientCIDRs[].clientCIDR: string',
      '[].serverAddressByClientCIDRs[].serverAddress: string',
    ]);
    expect(differences(golden('group.APIGroup'), await ours(`/apis/${GROUP}`))).toEqual(SAME);
  });

  test('aggregated', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    const [real, own] = [golden('apis.aggregated-v2'), await ours('/apis', accept)];
    expect(groupIn(own, 'items')).not.toEqual([]);
    // Kubernetes 1.34 and later leave the null out.
    expect(differences(groupIn(real, 'items'), groupIn(own, 'items')).missing).toEqual([
      '[].metadata.creationTimestamp: null',
    ]);
  });

  test('resources: the same names, verbs and short names', async () => {
    const [real, own] = [golden('version.APIResourceList'), await ours(`/apis/${GROUP}/v1`)];
    const resources = ({ resources: list }: JsonObject): JsonValue =>
      Array.isArray(list)
        ? list.map((item) => {
            const { storageVersionHash: _hash, ...rest } = item as JsonObject; // an APIResource
            return rest;
          })
        : [];
    expect(resources(own)).toEqual(resources(real));
    expect(differences(real, own)).toEqual(SAME);
  });

  test('version, and the index of OpenAPI', async () => {
    expect(differences(golden('version'), await ours('/version'))).toEqual(SAME);
    const { paths } = (await ours('/openapi/v3')) as { paths: JsonObject };
    expect(JSON.stringify(paths[`apis/${GROUP}/v1`])).toMatch(
      /^\{"serverRelativeURL":"\/openapi\/v3\/apis\/management\.platform\.sh\/v1\?hash=\w+"\}$/u,
    );
  });
});

describe('lists', () => {
  test('of metadata', async () => {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const own = await ours(KEYS_PATH, accept);
    expect(differences(golden('list.PartialObjectMetadataList'), own)).toEqual(SAME);
  });

  test('as a Table: its own columns, which are described', async () => {
    const own = await ours(KEYS_PATH, 'application/json;as=Table;g=meta.k8s.io;v=v1');
    const { missing, more } = differences(golden('list.Table'), own);
    expect(missing).toEqual([]);
    expect(more).toContain('.columnDefinitions[].description: string');
  });
});
