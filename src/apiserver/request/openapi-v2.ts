/** `/openapi/v2`: the definitions of the served kinds, for clients that read no `/openapi/v3`, such as Terraform. */

import { jsonResponse, negotiate, type ApiResponse } from './api-response.ts';
import { schemasOf } from './openapi.ts';
import type { DefinitionTable } from '../objects/resource-definition.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';

/** Clients also accept `v2@v1.0`, which Go's parser of media types rejects in a response. */
const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/**
 * As JSON and YAML with definitions. As protobuf, which only kubectl requests, without: kubectl reads kinds from `/openapi/v3`, but validates a
 * kind that is not there, such as `List` or an unknown apiVersion, against this document, and fails with a misleading message without it. A
 * kind without a definition passes, and the server reports the error. Throws a 406 `StatusError` for any other form.
 */
export function openApiV2(table: DefinitionTable, version: string, accept: string | undefined): ApiResponse {
  if (!accept?.replace('v2@v1', 'v2.v1').includes(PROTOBUF)) {
    const info = { title: 'Kubernetes', version };
    const document = { swagger: '2.0', info, paths: {}, definitions: definitionsOf(table) };
    return jsonResponse(200, document, negotiate(accept));
  }
  const info = stringField(1, 'Kubernetes') + stringField(2, version);
  const body = stringField(1, '2.0') + stringField(2, info) + stringField(8, '');
  return { code: 200, headers: { 'content-type': PROTOBUF, vary: 'Accept' }, body };
}

/** A protobuf field of fewer than 128 ASCII characters, so that each byte is a character. */
function stringField(number: number, text: string): string {
  return String.fromCharCode((number << 3) | 2, text.length) + text;
}

function definitionsOf(table: DefinitionTable): JsonObject {
  const definitions: JsonObject = {};
  for (const [group, versions] of table.groups) {
    for (const version of versions) {
      for (const [name, schema] of schemasOf(table.of(group, version))) definitions[name] = inV2(schema);
    }
  }
  return definitions;
}

/** A schema of version 3 in the words of version 2, which has no alternatives, and takes a description beside a reference. */
function inV2(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inV2);
  if (typeof value === 'string') return value.replace('#/components/schemas/', '#/definitions/');
  if (!isJsonObject(value)) return value;
  const { oneOf, allOf, ...rest } = value;
  const members = { ...rest, ...(Array.isArray(allOf) && isJsonObject(allOf[0]) ? allOf[0] : {}) };
  const converted = Object.entries(members).map(([name, member]): [string, JsonValue] => [
    name,
    inV2(member),
  ]);
  return { ...Object.fromEntries(converted), ...(oneOf === undefined ? {} : { type: 'string' }) };
}
