/** Compares discovery and OpenAPI documents with those that a real API server publishes for these kinds. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, objectList, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { KEYS_PATH, startComposed, type Composed } from './composed-api.ts';

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

  test('the second version of OpenAPI defines both kinds', async () => {
    const { definitions = {} } = await ours('/openapi/v2');
    const kinds = Object.values(definitions as JsonObject).flatMap((schema) =>
      objectList(schema as JsonObject, 'x-kubernetes-group-version-kind').map(({ kind }) => kind),
    );
    expect(kinds).toEqual(expect.arrayContaining(['OwnedAccessKey', 'DirectClusterEndpointToken']));
  });

  test('resources: the same names, verbs and short names', async () => {
    const [real, own] = [golden('version.APIResourceList'), await ours(`/apis/${GROUP}/v1`)];
    const resources = ({ resources: list }: JsonObject): JsonObject[] =>
      Array.isArray(list)
        ? list.map((item) => {
            const { storageVersionHash: _hash, ...rest } = item as JsonObject; // an APIResource
            return rest;
          })
        : [];
    const isRotation = ({ name }: JsonObject): boolean => name === 'ownedaccesskeys/rotate';
    const [added] = resources(own).filter(isRotation);
    expect(added).toMatchObject({ kind: 'OwnedAccessKeyRotation', verbs: ['create'] });
    const shared = resources(own).filter((item) => !isRotation(item));
    expect(shared).toEqual(resources(real));
    expect(differences({ ...real, resources: shared }, { ...own, resources: shared })).toEqual(SAME);
  });

  test('version, and the index of OpenAPI', async () => {
    expect(differences(golden('version'), await ours('/version'))).toEqual(SAME);
    const { paths } = (await ours('/openapi/v3')) as { paths: JsonObject };
    expect(JSON.stringify(paths[`apis/${GROUP}/v1`])).toMatch(
      /^\{"serverRelativeURL":"\/openapi\/v3\/apis\/management\.platform\.sh\/v1\?hash=\w+"\}$/u,
    );
  });
});

type Operations = Record<string, Record<string, JsonObject>>;

/** Everything that a document offers, a line each; without what nothing here takes notice of. */
function operations(document: JsonObject): string[] {
  const lines: string[] = [];
  for (const [path, item] of Object.entries(document['paths'] as Operations)) {
    for (const [method, operation] of Object.entries(item)) {
      if (method === 'parameters') continue;
      const { operationId = '', parameters, responses, requestBody } = operation;
      const names = JSON.stringify(parameters ?? []).match(/(?<="name":")\w+/gu) ?? [];
      const query = names.filter((name) => !name.startsWith('ignoreStoreReadError'));
      const codes = Object.keys(responses as JsonObject);
      const answers = new Set(JSON.stringify(responses).match(/(?<=[/.])\w+(?="\})/gu));
      const body = requestBody === undefined ? [] : ['body'];
      lines.push(`${method} ${path} ${JSON.stringify([operationId, query, codes, ...answers, ...body])}`);
    }
  }
  return lines.toSorted();
}

/** The types of the group by the last part of their names. */
function typesOf(
  document: JsonObject,
): [type: string, fields: [string, JsonObject][], description: unknown][] {
  const { schemas } = document['components'] as { schemas: Record<string, JsonObject> }; // OpenAPI
  return Object.entries(schemas)
    .filter(([name]) => !name.includes('io.k8s.apimachinery') && !name.endsWith('List'))
    .map(([name, { properties = {}, description }]) => [
      name.split('.').at(-1) ?? '',
      Object.entries(properties as Record<string, JsonObject>), // OpenAPI
      description,
    ]);
}

/** `Type.field type` of each field. */
function fieldsOf(document: JsonObject): string[] {
  return typesOf(document).flatMap(([type, fields]) =>
    fields.map(([field, property]) => `${type}.${field} ${typeText(property)}`),
  );
}

function typeText(property: JsonObject): string {
  const { allOf, type, items } = property;
  const { $ref } = Array.isArray(allOf) ? (allOf[0] as JsonObject) : property;
  if (typeof $ref === 'string') return ($ref.split('.').at(-1) ?? '').replace('Time', 'string');
  return isJsonObject(items) ? `[]${typeText(items)}` : String(type as string); // OpenAPI
}

/** Types and fields without a description. */
function undescribed(document: JsonObject): string[] {
  return typesOf(document).flatMap(([type, fields, description]) => [
    ...(description ? [] : [type]),
    ...fields.filter(([, property]) => !property['description']).map(([field]) => `${type}.${field}`),
  ]);
}

test('OpenAPI: the same operations, and every field with its type and a description', async () => {
  const real = golden('openapi-v3.management.platform.sh.v1');
  const own = await ours(`/openapi/v3/apis/${GROUP}/v1`);
  const [recorded, offered] = [operations(real), operations(own)];
  expect(recorded.filter((line) => !offered.includes(line))).toEqual([
    // Discovery has it, and a list with ?watch has been the way to watch for long.
    expect.stringMatching(/^get \/apis\/management.platform.sh\/v1\/ /u),
    expect.stringMatching(/^get \S+\/v1\/watch\/ownedaccesskeys /u),
    expect.stringMatching(/^get \S+\/v1\/watch\/ownedaccesskeys\/\{name\} /u),
    // It has no parameters there.
    expect.stringMatching(/^post \S+\/directclusterendpointtokens /u),
  ]);
  const known = fieldsOf(own);
  const missing = fieldsOf(real).filter((field) => !known.includes(field));
  // The platform renamed this one, and the requirement uses the new name.
  expect(missing).toEqual(['AccessKeyScope.allowLoftCli boolean']);
  expect(known).toContain('OwnedAccessKeySpec.description string');
  expect(undescribed(own)).toEqual([]);
});

describe('lists', () => {
  test('of metadata', async () => {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const own = await ours(KEYS_PATH, accept);
    expect(differences(golden('list.PartialObjectMetadataList'), own)).toEqual(SAME);
  });

  test('as a Table: with columns of this API, which have descriptions', async () => {
    const own = await ours(KEYS_PATH, 'application/json;as=Table;g=meta.k8s.io;v=v1');
    const { missing, more } = differences(golden('list.Table'), own);
    expect(missing).toEqual([]);
    expect(more).toContain('.columnDefinitions[].description: string');
  });
});
