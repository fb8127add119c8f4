/** Conformance tests of watches, for any API server. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { RawClient, type RawAnswer, type ServerAddress } from './raw-client.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };
const INITIAL_EVENTS = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' };
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

/** Registers the tests; `connect` is called once, before the first of them. */
export function watchContract(name: string, connect: () => Promise<ServerAddress>): void {
  describe(`watches of ${name}`, () => {
    let namespace: TestNamespace;

    beforeAll(async () => {
      namespace = new TestNamespace(new RawClient(await connect()));
      await namespace.open();
    });

    afterAll(() => namespace.close());

    test('begin after the resourceVersion of a list and send all events in order', async () => {
      const { version, path } = await namespace.list();
      await using watch = await namespace.client.watch(`${path}?watch=1&resourceVersion=${version}`);
      expect(watch.status).toBe(200);
      expect(watch.headers.get('content-type')).toBe('application/json');
      await namespace.create('w1', { finalizers: ['a.b/c'] });
      await namespace.patch('w1', { labels: { a: 'b' } });
      await namespace.remove('w1');
      await namespace.patch('w1', { finalizers: null });
      const events = [await watch.next(), await watch.next(), await watch.next(), await watch.next()];
      expect(events.map((event) => event?.type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
      const versions = events.map((event) => Number(metadata(event?.object)['resourceVersion']));
      expect(versions).toEqual(versions.toSorted((a, b) => a - b));
      expect(new Set(versions).size).toBe(4);
      expect(events[0]?.object).toMatchObject({ kind: 'Endpoints', apiVersion: 'v1' });
      expect(metadata(events[2]?.object)).toHaveProperty('deletionTimestamp');
    });

    test('have one line for each event, whatever its client takes for the end of a line', async () => {
      const { version, path } = await namespace.list();
      await using watch = await namespace.client.watch(`${path}?watch=1&resourceVersion=${version}`);
      const annotations = { note: 'first\nsecond\u2028third\u2029fourth' };
      await namespace.create('lines', { annotations });
      expect(metadata((await watch.next())?.object)).toMatchObject({ annotations });
    });

    test('without a resourceVersion begin with the current objects', async () => {
      await namespace.create('there');
      const { path } = await namespace.list();
      await using watch = await namespace.client.watch(
        `${path}?watch=true&fieldSelector=metadata.name%3Dthere`,
      );
      expect(await watch.summary(1)).toEqual(['ADDED there']);
      await namespace.patch('there', { labels: { x: 'y' } });
      expect(await watch.summary(1)).toEqual(['MODIFIED there']);
    });

    test('with a selector send ADDED for objects that begin to match and DELETED for those that no longer match', async () => {
      await namespace.create('sel', { labels: { team: 'a' } });
      const { version, path } = await namespace.list();
      const query = `watch=1&resourceVersion=${version}&labelSelector=team%3Da`;
      await using watch = await namespace.client.watch(`${path}?${query}`);
      const left = await namespace.patch('sel', { labels: { team: 'b' } });
      const gone = await watch.next();
      expect(gone?.type).toBe('DELETED');
      expect(metadata(gone?.object)['labels']).toEqual({ team: 'a' });
      expect(metadata(gone?.object)['resourceVersion']).toBe(metadata(left.json)['resourceVersion']);
      await namespace.patch('sel', { labels: { team: 'a' } });
      expect(await watch.summary(1)).toEqual(['ADDED sel']);
      await namespace.remove('sel');
      expect(await watch.summary(1)).toEqual(['DELETED sel']);
    });

    test('end after timeoutSeconds, with a bookmark before when bookmarks are allowed', async () => {
      const { version, path } = await namespace.list();
      const query = `watch=1&resourceVersion=${version}&timeoutSeconds=1`;
      await using plain = await namespace.client.watch(`${path}?${query}`);
      expect(await plain.next()).toBeUndefined();
    });

    test('can send the current objects first, with a bookmark at their end', async () => {
      await namespace.create('initial');
      const { path } = await namespace.list();
      const query =
        'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dinitial';
      await using watch = await namespace.client.watch(`${path}?${query}`);
      expect(await watch.summary(1)).toEqual(['ADDED initial']);
      const bookmark = await watch.next();
      expect(bookmark?.type).toBe('BOOKMARK');
      expect(metadata(bookmark?.object)['annotations']).toEqual({ 'k8s.io/initial-events-end': 'true' });
      expect(Number(metadata(bookmark?.object)['resourceVersion'])).toBeGreaterThan(0);
      await namespace.patch('initial', { labels: { x: 'y' } });
      expect(await watch.summary(1)).toEqual(['MODIFIED initial']);
    });

    test('as Tables name their columns once', async () => {
      await namespace.create('table');
      const { path } = await namespace.list();
      await using watch = await namespace.client.watch(
        `${path}?watch=1&fieldSelector=metadata.name%3Dtable`,
        TABLE,
      );
      const first = await watch.next();
      expect(first?.object).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
      expect(first?.object['columnDefinitions']).toHaveLength(3);
      expect(first?.object['rows']).toHaveLength(1);
      await namespace.patch('table', { labels: { x: 'y' } });
      expect((await watch.next())?.object['columnDefinitions']).toBeNull();
    });

    test('as Tables include the requested part of the objects', async () => {
      await namespace.create('bare');
      const { path } = await namespace.list();
      await using watch = await namespace.client.watch(
        `${path}?watch=1&includeObject=None&fieldSelector=metadata.name%3Dbare`,
        TABLE,
      );
      expect((await watch.next())?.object['rows']).toEqual([
        { cells: ['bare', '<none>', expect.anything()], object: null },
      ]);
    });

    test('of metadata only have bookmarks of that kind', async () => {
      await namespace.create('partial');
      const { path } = await namespace.list();
      await using watch = await namespace.client.watch(
        `${path}?watch=1&${INITIAL_EVENTS}&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dpartial`,
        PARTIAL,
      );
      const events = [await watch.next(), await watch.next()];
      expect(events.map((event) => event?.type)).toEqual(['ADDED', 'BOOKMARK']);
      const kind = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' };
      for (const event of events) expect(event?.object).toMatchObject(kind);
    });

    test('have no bookmark where none is allowed, not even after the initial events', async () => {
      await namespace.create('unmarked');
      const { path } = await namespace.list();
      const query = `watch=1&${INITIAL_EVENTS}&timeoutSeconds=1&fieldSelector=metadata.name%3Dunmarked`;
      await using watch = await namespace.client.watch(`${path}?${query}`);
      expect(await watch.summary(2)).toEqual(['ADDED unmarked']);
    });

    test('with initial events of a version that does not exist yet end with an error', async () => {
      const { path } = await namespace.list();
      const query = `watch=1&${INITIAL_EVENTS}&allowWatchBookmarks=true&resourceVersion=999999999`;
      await using watch = await namespace.client.watch(`${path}?${query}`);
      expect(watch.status).toBe(200);
      const error = await watch.next();
      expect(error).toMatchObject({
        type: 'ERROR',
        object: {
          status: 'Failure',
          reason: 'Timeout',
          details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
          code: 504,
        },
      });
      expect(error?.object['message']).toMatch(
        /^Timeout: Too large resource version: 999999999, current: \d+$/,
      );
      expect(await watch.next()).toBeUndefined();
    });

    test('can omit the current objects', async () => {
      await namespace.create('old');
      const { path } = await namespace.list();
      const query = 'watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan';
      await using watch = await namespace.client.watch(`${path}?${query}`);
      await namespace.create('new');
      expect(await watch.summary(1)).toEqual(['ADDED new']);
    });

    test('with timeoutSeconds=0 do not end', async () => {
      const { version, path } = await namespace.list();
      await using watch = await namespace.client.watch(
        `${path}?watch=1&resourceVersion=${version}&timeoutSeconds=0`,
      );
      await namespace.create('late');
      expect(await watch.summary(1)).toEqual(['ADDED late']);
    });

    test.each([
      'resourceVersionMatch=NotOlderThan',
      'resourceVersion=0&resourceVersionMatch=Exact',
      'sendInitialEvents=true',
      'sendInitialEvents=true&resourceVersionMatch=Exact',
      'continue=abc',
    ])('with %s are refused', async (options) => {
      const { path } = await namespace.list();
      const answer = await namespace.client.send({ method: 'GET', path: `${path}?watch=1&${options}` });
      expect(answer.status).toBe(422);
      expect(answer.json).toMatchObject({ reason: 'Invalid', details: { kind: 'ListOptions' } });
    });

    test('are not available in YAML', async () => {
      const { path } = await namespace.list();
      const headers = { accept: 'application/yaml' };
      const answer = await namespace.client.send({ method: 'GET', path: `${path}?watch=1`, headers });
      expect(answer.status).toBe(406);
    });

    test('with a resourceVersion that is not a number are rejected', async () => {
      const { path } = await namespace.list();
      const answer = await namespace.client.send({
        method: 'GET',
        path: `${path}?watch=1&resourceVersion=x`,
      });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.json?.['kind']).toBe('Status');
    });

    test('of one namespace do not include other namespaces', async () => {
      const { version, path } = await namespace.list();
      await using watch = await namespace.client.watch(`${path}?watch=1&resourceVersion=${version}`);
      await using everywhere = await namespace.client.watch(
        `/api/v1/endpoints?watch=1&resourceVersion=${version}&fieldSelector=metadata.name%3Dhere`,
      );
      await namespace.create('elsewhere', {}, 'default');
      await namespace.remove('elsewhere', 'default');
      await namespace.create('here');
      expect(await watch.summary(1)).toEqual(['ADDED here']);
      expect(await everywhere.summary(1)).toEqual(['ADDED here']);
    });
  });
}

/** Endpoints in a namespace that exists for one test file. */
class TestNamespace {
  readonly client: RawClient;
  readonly #namespace = `watch-${randomBytes(4).toString('hex')}`;

  constructor(client: RawClient) {
    this.client = client;
  }

  async open(): Promise<void> {
    await this.#send('POST', '/api/v1/namespaces', { metadata: { name: this.#namespace } });
  }

  async close(): Promise<void> {
    await this.#send('DELETE', `/api/v1/namespaces/${this.#namespace}`);
    await this.client[Symbol.asyncDispose]();
  }

  async list(): Promise<{ version: string; path: string }> {
    const path = this.#path();
    const { json } = await this.#send('GET', path);
    return { version: versionOf(json), path };
  }

  create(name: string, more: JsonObject = {}, namespace = this.#namespace): Promise<RawAnswer> {
    return this.#send('POST', this.#path(namespace), { metadata: { name, ...more } });
  }

  patch(name: string, change: JsonObject): Promise<RawAnswer> {
    return this.#send('PATCH', `${this.#path()}/${name}`, { metadata: change });
  }

  remove(name: string, namespace = this.#namespace): Promise<RawAnswer> {
    return this.#send('DELETE', `${this.#path(namespace)}/${name}`);
  }

  #path(namespace = this.#namespace): string {
    return `/api/v1/namespaces/${namespace}/endpoints`;
  }

  async #send(method: string, path: string, body?: JsonObject): Promise<RawAnswer> {
    const headers = method === 'PATCH' ? MERGE : {};
    const request = { method, path, headers, ...(body ? { body } : {}) };
    const answer = await this.client.send(request);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer;
  }
}

function versionOf(object: JsonObject | null | undefined): string {
  const { resourceVersion } = metadata(object);
  return typeof resourceVersion === 'string' ? resourceVersion : '';
}

function metadata(object: JsonObject | null | undefined): JsonObject {
  return (object?.['metadata'] ?? {}) as JsonObject; // every object of an API server has it
}
