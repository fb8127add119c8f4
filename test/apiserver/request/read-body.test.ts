/** No request body blocks the event loop for long: watches, health checks and the sync engine share it. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { BODY_BYTES_MAX, YAML_BYTES_MAX } from '../../../src/apiserver/limits.ts';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
} from '../../../src/embedded-cluster/embedded-cluster.ts';
import { startComposed, type Composed } from '../../access-keys/composed-api.ts';
import {
  HOSTILE_SELECTORS,
  hostileJsonPatches,
  hostileObjects,
  hostileProtobuf,
  hostileReviews,
  hostileStrategicPatches,
  hostileYaml,
  type HostileBody,
  type Resource,
} from './hostile-bodies.ts';
import { longestTurnMs, threadMs } from './longest-turn.ts';
import { sendBytes, type BytesRequest } from './send-bytes.ts';

/** Processor time of one turn of the event loop, on a quiet machine. */
const TURN_MS_MAX = 100;
/** A turn may include garbage collection: then it is measured again. */
const ATTEMPTS = 4;
/**
 * Other programs fill the caches of the processor, so the same work takes longer on a busy machine. A turn may take as long as parsing the
 * largest body this many times at that moment, which is less than 100 ms on a quiet machine.
 */
const PARSES_MAX = 2;

const MEDIA: Readonly<Record<HostileBody['media'], string>> = {
  json: 'application/json',
  yaml: 'application/yaml',
  'json-patch': 'application/json-patch+json',
  'strategic-patch': 'application/strategic-merge-patch+json',
  protobuf: 'application/vnd.kubernetes.protobuf',
};

let cluster: EmbeddedCluster;
let keys: Composed;
let token = '';

beforeAll(async () => {
  cluster = await startEmbeddedCluster({ name: 'cost' });
  keys = await startComposed();
  ({ text: token } = await keys.key('cost', { user: 'ann', groups: ['platform:admins'] }));
  for (const body of [object('a'), object('big', 800)]) {
    const { status } = await sendBytes({
      method: 'POST',
      url: collection('configmaps'),
      headers: { 'content-type': MEDIA.json },
      bytes: Buffer.from(JSON.stringify(body)),
    });
    if (status !== 201) throw new Error(`cannot create the object of the test: ${status}`);
  }
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await keys[Symbol.asyncDispose]();
});

/** A ConfigMap with as many data entries and finalizers. */
function object(name: string, members = 0): object {
  const names = Array.from({ length: members }, (_, index) => index.toString(36));
  return {
    metadata: { name, finalizers: names.map((key) => `a/${key}`) },
    data: Object.fromEntries(names.map((key) => [key, ''])),
  };
}

function collection(resource: string): string {
  return `${cluster.url}/api/v1/namespaces/default/${resource}`;
}

/** A turn that is too long in every attempt, and internal errors. */
async function problemsOf(request: BytesRequest): Promise<string[]> {
  const statuses = new Set<number>();
  const turnsMs: number[] = [];
  for (let attempt = 1, isOver = true; attempt <= ATTEMPTS && isOver; attempt++) {
    const turnMs = await longestTurnMs(async () => statuses.add((await sendBytes(request)).status));
    isOver = turnMs > TURN_MS_MAX && turnMs > PARSES_MAX * parseMs();
    if (isOver) turnsMs.push(Math.round(turnMs));
  }
  const errors = [...statuses].filter((status) => status >= 500).map((status) => `status ${status}`);
  return turnsMs.length < ATTEMPTS
    ? errors
    : [`${request.method}: turns of ${turnsMs.join(', ')} ms`, ...errors];
}

const LARGEST = JSON.stringify(
  Array.from({ length: BODY_BYTES_MAX / 32 }, (_, index) => ({ [`name-${index}`]: 'value', a: [] })),
);

/** Processor time of parsing the largest body now. */
function parseMs(): number {
  const startMs = threadMs();
  JSON.parse(LARGEST);
  return threadMs() - startMs;
}

type Method = 'POST' | 'PUT' | 'DELETE' | 'apply' | 'merge';

/** Sends the body by each method, to the ConfigMap or Endpoints called a. */
async function problems(
  methods: readonly Method[],
  body: HostileBody,
  resource: Resource = 'configmaps',
): Promise<string[]> {
  const url = collection(resource);
  const bytes = body.bytes();
  const found: string[] = [];
  for (const method of methods) {
    const type = method === 'apply' ? APPLY : method === 'merge' ? MERGE : MEDIA[body.media];
    found.push(...(await problemsOf({ ...TARGETS[method](url), headers: { 'content-type': type }, bytes })));
  }
  return found;
}

const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';
const TARGETS: Readonly<Record<Method, (collection: string) => { method: string; url: string }>> = {
  POST: (url) => ({ method: 'POST', url: `${url}?dryRun=All` }),
  PUT: (url) => ({ method: 'PUT', url: `${url}/a` }),
  DELETE: (url) => ({ method: 'DELETE', url: `${url}/nope` }),
  apply: (url) => ({ method: 'PATCH', url: `${url}/a?fieldManager=cost&force=true` }),
  merge: (url) => ({ method: 'PATCH', url: `${url}/a` }),
};

/** The bodies with these names. */
function only(bodies: readonly HostileBody[], names: readonly string[]): HostileBody[] {
  const found = bodies.filter(({ name }) => names.includes(name));
  expect(found).toHaveLength(names.length);
  return found;
}

const named = <Item extends { readonly name: string }>(items: readonly Item[]): [string, Item][] =>
  items.map((item) => [item.name, item]);

const accepted = hostileObjects('configmaps', 'a', true);

// An update is a create that also compares the object with the stored one; an apply merges it by field managers.
test.each(named(accepted.filter(({ isMetadata }) => isMetadata)))('metadata with %s', async (_name, body) => {
  expect(await problems(['PUT', 'apply'], body)).toEqual([]);
});

test.each(named(accepted.filter(({ isMetadata }) => !isMetadata)))(
  'an object with %s',
  async (_name, body) => {
    expect(await problems(['POST'], body)).toEqual([]);
  },
);

test('apply and merge patch of objects with very many members', async () => {
  const names = ['distinct unknown keys', 'one key again and again', 'very many data entries'];
  for (const body of only(accepted, names)) expect(await problems(['apply', 'merge'], body)).toEqual([]);
});

test.each(named(hostileObjects('endpoints', 'a', true)))(
  'accepted Endpoints with %s',
  async (_name, body) => {
    expect(await problems(['POST', 'PUT'], body, 'endpoints')).toEqual([]);
  },
);

// These have too many tokens; a create and delete options are parsed separately.
test('3 MiB of JSON with too many tokens', async () => {
  const names = ['distinct unknown keys', 'nested lists', 'a list of numbers', 'a body that is cut short'];
  for (const body of only(hostileObjects('configmaps', 'a', false), names)) {
    expect(await problems(['POST', 'DELETE'], body)).toEqual([]);
  }
});

async function keyProblems(resource: string, bytes: Buffer): Promise<string[]> {
  return problemsOf({
    method: 'POST',
    url: `${keys.api.url}/apis/${resource}?dryRun=All`,
    headers: { 'content-type': MEDIA.json, authorization: `Bearer ${token}` },
    bytes,
    ca: keys.ca,
  });
}

test.each(named(hostileObjects('ownedaccesskeys', 'a', true)))(
  'an access key with %s',
  async (_name, body) => {
    expect(await keyProblems('management.platform.sh/v1/ownedaccesskeys', body.bytes())).toEqual([]);
  },
);

test.each(named(hostileReviews()))('a review with %s', async (_name, { resource, bytes }) => {
  expect(await keyProblems(resource, bytes())).toEqual([]);
});

test.each(named(hostileJsonPatches()))('a JSON Patch of %s', async (_name, body) => {
  expect(await patchProblems(body)).toEqual([]);
});

test.each(named(hostileStrategicPatches()))('a strategic merge patch with %s', async (_name, body) => {
  expect(await patchProblems(body)).toEqual([]);
});

/** The patched object has very many members. */
function patchProblems({ media, bytes }: HostileBody): Promise<string[]> {
  const url = `${collection('configmaps')}/big?dryRun=All`;
  return problemsOf({ method: 'PATCH', url, headers: { 'content-type': MEDIA[media] }, bytes: bytes() });
}

test.each(named(hostileProtobuf()))('protobuf with %s', async (_name, body) => {
  expect(await problems(['POST'], body)).toEqual([]);
});

test.each(Object.entries(HOSTILE_SELECTORS))('a selector of %s', async (_name, query) => {
  const url = `${collection('configmaps')}?${encodeURI(query)}`;
  expect(await problemsOf({ method: 'GET', url, headers: {} })).toEqual([]);
});

// The longest texts that are not refused for their number of tokens.
test.each(named(hostileYaml()))('YAML with %s', async (_name, body) => {
  expect(await problems(['apply'], body)).toEqual([]);
});

test('YAML of the largest size', async () => {
  const names = ['opening brackets', 'tags', 'aliases', 'distinct keys', 'a plain list', 'merge keys'];
  for (const body of only(hostileYaml(YAML_BYTES_MAX), names)) {
    expect(await problems(['POST'], body)).toEqual([]);
  }
});
