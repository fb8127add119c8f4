/** The worked cases about what an API server does with any kind, on a kind that is not built in. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../../src/lib/json.ts';
import { textAt } from '../cases.ts';
import type { RawAnswer, RawClient } from '../contract/raw-client.ts';
import { accessKeyTable } from './access-key-kind.ts';
import { startMachinery } from './machinery.ts';

interface CaseRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: JsonValue;
  bodyRaw?: string;
  bodyGen?: string;
  contentType?: string;
  state?: string;
}

interface Expected {
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

interface Case {
  id: string;
  group: string;
  given?: CaseRequest[];
  request: CaseRequest;
  expect: Expected;
  ours?: Expected & { why: string };
  after?: Record<string, number>;
}

const CASES = (
  parse(readFileSync(join(import.meta.dirname, '..', 'cases', 'management.yaml'), 'utf8')) as {
    cases: Case[];
  }
).cases; // our own file

/** Groups that are about the two resources themselves or about who may use them: not the machinery. */
const OTHER_GROUPS = ['auth', 'token', 'platform'];

/** Told in words, or not what this machinery does; each with the reason, or the test that shows it. */
const NOT_AS_THEY_ARE: Record<string, string> = {
  'create-generate-name-conflict': 'needs a server whose suffix is fixed: machinery.test.ts',
  'create-malformed-json': 'the body is not printed: an error names fields, never the whole object',
  'create-json-array': 'the body is not printed: an error names fields, never the whole object',
  'create-ownerref-no-uid': 'kube-apiserver 1.36 says "must not be empty" without the field',
  'create-ownerref-no-name': 'kube-apiserver 1.36 says "must not be empty" without the field',
  'create-ownerref-block-owner-deletion':
    'an admission rule of the key API, which is not part of the machinery',
  'get-accept-protobuf-only': 'the 406 comes as JSON: nothing here writes protobuf',
  'put-no-rv': 'kube-apiserver 1.36 prints the missing version as 0, not 0x0',
  'put-deletion-timestamp': 'kube-apiserver 1.36 prints the time as JSON',
  'put-uid-mismatch': 'our message, without the storage key, is asserted in machinery.test.ts',
  'json-patch-add-annotation-no-parent': 'the map of annotations is made: the documented example must run',
  'json-patch-status-ignored': 'nothing changes here, so nothing is written and the version stays',
  'json-patch-wrong-type': 'our message is asserted in machinery.test.ts',
  'json-patch-kind': 'our message is asserted in machinery.test.ts',
  'merge-patch-unknown-strict': 'our message is asserted in machinery.test.ts',
  api: 'there is no core group here, so the path is not found: a Status with 404',
};

const GENERIC = CASES.filter(({ group }) => !OTHER_GROUPS.includes(group));

/** Cases whose steps are told in words, and the test that does what they tell. */
const IN_WORDS: Record<string, string> = {
  'list-continue-expired': 'machinery.test.ts, lists',
  'list-continue-snapshot': 'machinery.test.ts, lists',
  'watch-lifecycle': 'watch-contract.ts',
  'watch-selector-leave-enter': 'watch-contract.ts',
  'watch-timeout': 'watch-contract.ts',
  'watch-table': 'watch-contract.ts',
  'status-write-bumps-rv':
    'the key API keeps lastActivity apart; that the status is a write like any other: machinery.test.ts',
  'managedfields-cap': 'machinery.test.ts, field managers',
  'apply-multi-conflict': 'machinery.test.ts, field managers',
  'grace-shorten': 'machinery.test.ts, graceful deletion',
  'grace-lengthen-ignored': 'machinery.test.ts, graceful deletion',
  'grace-zero-removes': 'machinery.test.ts, graceful deletion',
  'grace-finalizer-removed-before-deadline': 'machinery.test.ts, graceful deletion',
  'blockownerdeletion-admission': 'an admission rule of the key API, which is not part of the machinery',
};

describe('worked cases of any kind', () => {
  const leftOut = { ...NOT_AS_THEY_ARE, ...IN_WORDS };
  const running = GENERIC.filter(({ id }) => !Object.hasOwn(leftOut, id));

  test('those left out are exactly those with a reason', () => {
    const known = new Set(GENERIC.map(({ id }) => id));
    expect(Object.keys(leftOut).filter((id) => !known.has(id))).toEqual([]);
    expect(running.length + Object.keys(leftOut).length).toBe(GENERIC.length);
  });

  test.each(running.map((item) => [item.id, item] as const))('%s', async (_id, item) => {
    await using machinery = await startMachinery({ table: accessKeyTable() });
    const run = new Run(machinery.client);
    for (const step of item.given ?? []) await run.send(step);
    const answer = await run.send(item.request);
    expect(differences(answer, item, run)).toEqual([]);
    for (const [what, status] of Object.entries(item.ours ? {} : (item.after ?? {}))) {
      const name = what.split(' ')[1] ?? '';
      const path = `/apis/management.platform.sh/v1/ownedaccesskeys/${name}`;
      expect((await machinery.client.send({ method: 'GET', path })).status).toBe(status);
    }
  });
});

/** Remembers the last resourceVersion: `$rv` in a request. */
class Run {
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

type Differences = string[];

/** What is not as the case wants it. */
function differences(answer: RawAnswer, { expect: observed, ours }: Case, run: Run): Differences {
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
  same('status of the Status', body['status'], expected.statusField);
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
