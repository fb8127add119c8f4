/** Runs the cases of `cases/management.yaml` and returns the differences. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { textAt } from '../support/cases.ts';
import type { RawAnswer, RawClient } from '../contract/raw-client.ts';

export interface CaseRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: JsonValue;
  bodyRaw?: string;
  bodyGen?: string;
  contentType?: string;
  /** In words: what to set up, and the caller. */
  state?: string;
  as?: string;
}

export interface Expected {
  status?: number;
  reason?: string;
  message?: string;
  messageRegex?: string;
  kind?: string;
  details?: JsonObject;
  causes?: JsonObject[];
  fields?: Record<string, JsonValue>;
  headers?: Record<string, string>;
  statusField?: string;
  bodyText?: string;
}

export interface ManagementCase {
  id: string;
  group: string;
  given?: CaseRequest[];
  request: CaseRequest;
  expect: Expected;
  ours?: Expected & { why: string };
  after?: Record<string, number>;
}

export const MANAGEMENT_CASES = (
  parse(readFileSync(join(import.meta.dirname, '..', 'cases', 'management.yaml'), 'utf8')) as {
    cases: ManagementCase[];
  }
).cases; // our own file

/** Remembers the last resourceVersion: `$rv` in a request. */
export class Run {
  readonly #client: RawClient;
  version = '';
  /** What it was before the last request. */
  previous = '';

  constructor(client: RawClient) {
    this.#client = client;
  }

  async send(request: CaseRequest): Promise<RawAnswer> {
    const { method = 'GET', path, headers = {}, contentType } = request;
    const body = bodyOf(request);
    const before = this.version;
    const answer = await this.#client.send({
      method,
      path: path.replaceAll('$rv', before),
      headers: {
        'user-agent': '',
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      },
      ...(body === undefined ? {} : { body: body.replaceAll('$rv', before) }),
    });
    const metadata = answer.json?.['metadata'];
    const version = isJsonObject(metadata) ? metadata['resourceVersion'] : undefined;
    this.previous = before;
    if (typeof version === 'string' && answer.json?.['kind'] === 'OwnedAccessKey') this.version = version;
    return answer;
  }
}

function bodyOf({ body, bodyRaw, bodyGen }: CaseRequest): string | undefined {
  if (bodyRaw !== undefined) return bodyRaw;
  if (bodyGen !== undefined) {
    const size = Number(/of (\d+) bytes|"x"\*(\d+)/.exec(bodyGen)?.slice(1).find(Boolean));
    const spec = { displayName: 'D', ttl: 60, type: 'User', user: 'u' };
    return JSON.stringify({ metadata: { name: 'k1', annotations: { a: 'x'.repeat(size) } }, spec });
  }
  return body === undefined ? undefined : JSON.stringify(body);
}

export type Differences = string[];

/** What is not as the case wants it. */
export function differences(
  answer: RawAnswer,
  { expect: observed, ours }: ManagementCase,
  run: Run,
): Differences {
  const expected: Expected = { ...observed, ...ours };
  const body = answer.json ?? {};
  const found: Differences = [];
  const same = (what: string, actual: unknown, wanted: unknown): void => {
    if (wanted !== undefined && actual !== wanted) {
      found.push(`${what}: ${JSON.stringify(actual)} is not ${JSON.stringify(wanted)}`);
    }
  };
  same('status', answer.status, expected.status);
  same('kind', body['kind'], answer.status >= 400 ? 'Status' : expected.kind);
  same('status of the Status', body['status'], (ours ?? observed).statusField);
  if (expected.reason) same('reason', body['reason'], expected.reason);
  // Where ours differs on purpose, its own words are not those that were observed.
  if (ours) return found;
  same('message', body['message'], expected.message);
  if (!new RegExp(expected.messageRegex ?? '').test(textAt(body, 'message'))) found.push('message');
  for (const [name, value] of Object.entries(expected.headers ?? {}))
    same(name, answer.headers.get(name), value);
  same('text', expected.bodyText && answer.text.slice(0, 60), expected.bodyText?.slice(0, 60));
  return [...found, ...wrongDetails(body, expected), ...wrongFields(body, expected.fields ?? {}, run)];
}

function wrongDetails(
  body: JsonObject,
  { details: wanted = {}, causes: wantedCauses }: Expected,
): Differences {
  const details = isJsonObject(body['details']) ? body['details'] : {};
  const found = Object.keys(wanted)
    .filter((name) => !jsonEquals(details[name], wanted[name]))
    .map((name) => `details.${name}: ${JSON.stringify(details[name])}`);
  if (!wantedCauses) return found;
  const summary = (causes: readonly JsonObject[]): string[] =>
    causes.map(({ reason, field }) => `${JSON.stringify(reason)} ${JSON.stringify(field ?? '')}`).toSorted();
  const causes = Array.isArray(details['causes']) ? details['causes'].filter(isJsonObject) : [];
  const [is, should] = [summary(causes), summary(wantedCauses)];
  return jsonEquals(is, should) ? found : [...found, `causes: ${is.join()} are not ${should.join()}`];
}

function wrongFields(body: JsonObject, fields: Record<string, JsonValue>, run: Run): Differences {
  return Object.entries(fields)
    .filter(([path, expected]) => !isAsExpected(valueAt(body, path), expected, run))
    .map(
      ([path, expected]) =>
        `${path}: ${JSON.stringify(valueAt(body, path))} is not ${JSON.stringify(expected)}`,
    );
}

function isAsExpected(actual: JsonValue | undefined, expected: JsonValue, run: Run): boolean {
  if (isJsonObject(expected) && typeof expected['regex'] === 'string') {
    return typeof actual === 'string' && new RegExp(expected['regex']).test(actual);
  }
  switch (expected) {
    case 'absent':
      return actual === undefined;
    case 'null':
      return actual === null;
    case 'null or a timestamp':
      return actual === null || (typeof actual === 'string' && !Number.isNaN(Date.parse(actual)));
    case 'same as $rv':
      return actual === run.previous;
    case 'greater than $rv':
      return Number(actual) > Number(run.previous);
    case 'PartialObjectMetadata of meta.k8s.io/v1':
      return (
        isJsonObject(actual) &&
        actual['kind'] === 'PartialObjectMetadata' &&
        actual['apiVersion'] === 'meta.k8s.io/v1'
      );
    default:
      return jsonEquals(actual, expected);
  }
}

/** `metadata.name`, `items[*].metadata.name`, `rows.length`, `rows[0].object`, and the short form of managedFields. */
function valueAt(body: JsonObject, path: string): JsonValue | undefined {
  if (path === 'metadata.managedFields[*]') return managers(body);
  const all = /^(\w+)\[\*\]\.(.*)$/.exec(path);
  if (all) {
    const list = body[all[1] ?? ''];
    return Array.isArray(list)
      ? list.map((item) => valueAt(item as JsonObject, all[2] ?? '') ?? null)
      : undefined;
  }
  let value: JsonValue | undefined = body;
  for (const part of path.split(/[.[\]]+/).filter(Boolean)) {
    if (Array.isArray(value)) value = part === 'length' ? value.length : value[Number(part)];
    else if (isJsonObject(value)) value = value[part];
    else return undefined;
  }
  return value;
}

function managers(body: JsonObject): JsonValue {
  const { managedFields = [] } = body['metadata'] as { managedFields?: JsonObject[] }; // an object of the API
  return managedFields.map((entry) => [
    entry['manager'] ?? '',
    entry['operation'] ?? '',
    entry['subresource'] ?? '',
    entry['fieldsV1'] ?? null,
  ]);
}
