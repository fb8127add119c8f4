/** No request body may keep the event loop from everything else in the process: watches, health checks and the sync share it. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
  hostileStrategicPatches,
  hostileYaml,
  type HostileBody,
} from './hostile-bodies.ts';
import { longestTurnMs } from './longest-turn.ts';
import { sendBytes, type BytesRequest } from './send-bytes.ts';

/** Processor time of one turn of the event loop. */
const TURN_MS_MAX = 100;
/** A turn that includes a collection of garbage, or meets other programs that fill the caches of the processor, is measured again. */
const ATTEMPTS = 4;

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

/** What is wrong with how the server takes the request: a long turn in each of some attempts, an internal error. */
async function problemsOf(request: BytesRequest): Promise<string[]> {
  const statuses = new Set<number>();
  let turnMs = Number.POSITIVE_INFINITY;
  for (let attempt = 1; attempt <= ATTEMPTS && turnMs > TURN_MS_MAX; attempt++) {
    const longestMs = await longestTurnMs(async () => statuses.add((await sendBytes(request)).status));
    turnMs = Math.min(turnMs, longestMs);
  }
  const errors = [...statuses].filter((status) => status >= 500).map((status) => `status ${status}`);
  return turnMs > TURN_MS_MAX ? [`${request.method}: a turn of ${Math.round(turnMs)} ms`, ...errors] : errors;
}

function problems(method: string, url: string, { media, bytes }: HostileBody): Promise<string[]> {
  const type = method === 'PATCH' && isApplied(media) ? 'application/apply-patch+yaml' : MEDIA[media];
  return problemsOf({ method, url, headers: { 'content-type': type }, bytes });
}

const isApplied = (media: HostileBody['media']): boolean => media === 'json' || media === 'yaml';

const named = <Item extends { readonly name: string }>(items: readonly Item[]): [string, Item][] =>
  items.map((item) => [item.name, item]);

describe.each(['configmaps', 'endpoints'] as const)(
  'JSON for %s with as much as the server accepts:',
  (resource) => {
    test.each(named(hostileObjects(resource, 'a', true)))('%s', async (_name, body) => {
      const url = collection(resource);
      expect(await problems('POST', `${url}?dryRun=All`, body)).toEqual([]);
      expect(await problems('PATCH', `${url}/a?fieldManager=cost&force=true`, body)).toEqual([]);
      expect(await problems('PATCH', `${url}/a`, body)).toEqual([]);
      expect(await problems('PUT', `${url}/a`, body)).toEqual([]);
    });
  },
);

test.each(named(hostileObjects('configmaps', 'a', false)))('JSON of 3 MiB: %s', async (_name, body) => {
  expect(await problems('POST', `${collection('configmaps')}?dryRun=All`, body)).toEqual([]);
  expect(await problems('DELETE', `${collection('configmaps')}/nope`, body)).toEqual([]);
});

test.each(named(hostileObjects('ownedaccesskeys', 'a', true)))(
  'an access key with %s',
  async (_name, body) => {
    const url = `${keys.api.url}/apis/management.platform.sh/v1/ownedaccesskeys`;
    const found = await problemsOf({
      method: 'POST',
      url: `${url}?dryRun=All`,
      headers: { 'content-type': MEDIA.json, authorization: `Bearer ${token}` },
      bytes: body.bytes,
      ca: keys.ca,
    });
    expect(found).toEqual([]);
  },
);

test.each(named(hostileJsonPatches()))('a JSON Patch of %s', async (_name, body) => {
  expect(await problems('PATCH', `${collection('configmaps')}/big?dryRun=All`, body)).toEqual([]);
});

test.each(named(hostileStrategicPatches()))('a strategic merge patch with %s', async (_name, body) => {
  expect(await problems('PATCH', `${collection('configmaps')}/big?dryRun=All`, body)).toEqual([]);
});

test.each(named(hostileProtobuf()))('protobuf with %s', async (_name, body) => {
  expect(await problems('POST', `${collection('configmaps')}?dryRun=All`, body)).toEqual([]);
});

test.each(Object.entries(HOSTILE_SELECTORS))('a selector of %s', async (_name, query) => {
  const found = await problemsOf({
    method: 'GET',
    url: `${collection('configmaps')}?${encodeURI(query)}`,
    headers: {},
  });
  expect(found).toEqual([]);
});

// A longer text is parsed in the YAML thread for as much longer; the event loop does not notice.
const YAML_BYTES = 24 * 1024;

test.each(named(hostileYaml(YAML_BYTES)))('YAML with %s', async (_name, body) => {
  expect(await problems('POST', `${collection('configmaps')}?dryRun=All`, body)).toEqual([]);
});

test.each(named(hostileYaml(4000)))('short YAML with %s', async (_name, body) => {
  expect(await problems('PATCH', `${collection('configmaps')}/a?fieldManager=cost&force=true`, body)).toEqual(
    [],
  );
});
