/** The OpenAPI v2 document: its definitions, and content negotiation. */

import { describe, expect, test } from 'vitest';
import { openApiV2 } from '../../../src/apiserver/request/openapi-v2.ts';
import { DefinitionTable } from '../../../src/apiserver/objects/resource-definition.ts';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import { isJsonObject, objectField, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { builtInKinds } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';

const VERSION = 'v1.37.0+test';

describe('the OpenAPI v2 document', () => {
  test.each([
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    'application/com.github.proto-openapi.spec.v2.v1.0+protobuf, application/json',
  ])('is protobuf for %s, named in a way that clients can read', (accept) => {
    const { headers, body } = openApiV2(new DefinitionTable([]), VERSION, accept);
    expect(headers['content-type']).toBe('application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    const bytes = Buffer.from(body);
    expect(bytes.every((byte) => byte < 0x80)).toBe(true);
    const document = fields(bytes);
    expect(document.get(1)?.toString()).toBe('2.0');
    expect(document.get(8)).toHaveLength(0);
    const info = fields(document.get(2) ?? Buffer.alloc(0));
    expect([...info].map(([number, text]) => [number, text.toString()])).toEqual([
      [1, 'Kubernetes'],
      [2, VERSION],
    ]);
  });

  test.each([undefined, '', '*/*', 'application/json'])('is JSON for %j', (accept) => {
    expect(JSON.parse(openApiV2(new DefinitionTable([]), VERSION, accept).body)).toEqual({
      swagger: '2.0',
      info: { title: 'Kubernetes', version: VERSION },
      paths: {},
      definitions: {},
    });
  });

  test('is not available in other media types', () => {
    expect(() => openApiV2(new DefinitionTable([]), VERSION, 'text/html')).toThrow(
      /only the following media types are accepted/u,
    );
  });
});

describe('the definitions of the built-in kinds', () => {
  const { body } = openApiV2(builtInKinds(allowEverything), VERSION, undefined);
  const definitions = objectField(JSON.parse(body) as JsonObject, 'definitions'); // JSON

  test('name the kind of each object', () => {
    const endpoints = objectField(definitions, 'io.k8s.api.core.v1.Endpoints');
    expect(endpoints['x-kubernetes-group-version-kind']).toEqual([
      { group: '', kind: 'Endpoints', version: 'v1' },
    ]);
    expect(objectField(objectField(endpoints, 'properties'), 'metadata')).toEqual({
      description: expect.any(String) as string,
      $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
    });
  });

  test('use the words of version 2, and refer to one another only', () => {
    const found = { references: new Set<string>(), alternatives: 0 };
    const visit = (value: JsonValue): void => {
      if (Array.isArray(value)) value.forEach(visit);
      if (!isJsonObject(value)) return;
      if (typeof value['$ref'] === 'string')
        found.references.add(value['$ref'].replace('#/definitions/', ''));
      if (value['oneOf'] !== undefined || value['allOf'] !== undefined) found.alternatives++;
      Object.values(value).forEach((member) => visit(member ?? null));
    };
    visit(definitions);
    expect(found.alternatives).toBe(0);
    expect([...found.references].filter((name) => definitions[name] === undefined)).toEqual([]);
    const port = objectField(definitions, 'io.k8s.api.core.v1.ServicePort');
    expect(objectField(objectField(port, 'properties'), 'targetPort')).toMatchObject({
      type: 'string',
      format: 'int-or-string',
    });
  });
});

/** Number → content, of a message of fields with a length below 128 each. */
function fields(message: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let at = 0;
  while (at < message.length) {
    const [tag = 0, length = 0] = message.subarray(at, at + 2);
    expect(tag & 7).toBe(2);
    found.set(tag >> 3, message.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return found;
}
