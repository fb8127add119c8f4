/** The worked cases about what an API server does with any kind, on a kind that is not built in. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from '../../src/lib/json.ts';
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
    check(answer, item, run);
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

  previous = '';
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

function check(answer: RawAnswer, { expect: observed, ours }: Case, run: Run): void {
  const expected: Expected = { ...observed, ...ours };
  expect(answer.status, answer.text).toBe(expected.status);
  const body = answer.json ?? {};
  if (expected.kind !== undefined && answer.status < 300) expect(body['kind']).toBe(expected.kind);
  if (expected.statusField !== undefined) expect(body['status']).toBe(expected.statusField);
  if (answer.status >= 400) expect(body['kind']).toBe('Status');
  if (expected.reason) expect(body['reason']).toBe(expected.reason);
  // Where ours differs on purpose, its own words are not those that were observed.
  if (ours === undefined) checkWords(body, expected);
  for (const [name, value] of Object.entries(ours ? {} : (expected.headers ?? {}))) {
    expect(answer.headers.get(name)).toBe(value);
  }
  if (expected.bodyText !== undefined) expect(answer.text.slice(0, 60)).toBe(expected.bodyText.slice(0, 60));
  if (ours === undefined) checkFields(body, expected.fields ?? {}, run);
}

function checkWords(body: JsonObject, expected: Expected): void {
  if (expected.message !== undefined) expect(body['message']).toBe(expected.message);
  if (expected.messageRegex !== undefined) expect(body['message']).toMatch(new RegExp(expected.messageRegex));
  if (expected.details !== undefined) expect(body['details']).toMatchObject(expected.details);
  if (expected.causes !== undefined) {
    const { causes } = body['details'] as { causes: JsonObject[] }; // a Status with causes
    expect(causes.map(({ reason, field }) => ({ reason, field }))).toEqual(
      expected.causes.map(({ reason, field }) => ({ reason, field: field === '' ? undefined : field })),
    );
  }
}

function checkFields(body: JsonObject, fields: Record<string, JsonValue>, run: Run): void {
  for (const [path, expected] of Object.entries(fields)) {
    const actual = valueAt(body, path);
    if (expected === 'absent') expect(actual, path).toBeUndefined();
    else if (expected === 'same as $rv') expect(actual, path).toBe(run.previous);
    else if (expected === 'greater than $rv')
      expect(Number(actual), path).toBeGreaterThan(Number(run.previous));
    else if (expected === 'PartialObjectMetadata of meta.k8s.io/v1') {
      expect(actual, path).toMatchObject({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' });
    } else if (expected === 'null') expect(actual, path).toBeNull();
    else if (isJsonObject(expected) && typeof expected['regex'] === 'string') {
      expect(actual, path).toMatch(new RegExp(expected['regex']));
    } else expect(jsonEquals(actual, expected), `${path}: ${JSON.stringify(actual)}`).toBe(true);
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
