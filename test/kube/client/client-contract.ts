/** Conformance tests of the client, for the embedded server and a real kube-apiserver. */

import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { missingRights } from '../../../src/kube/access-review.ts';
import type { ServerAccess } from '../../../src/kube/access.ts';
import { CachingDiscovery } from '../../../src/kube/discovery.ts';
import { AggregatingRecorder, EventSeriesLimit } from '../../../src/kube/event-recorder.ts';
import {
  CachingInformer,
  type InformerOptions,
  type ObservableInformer,
} from '../../../src/kube/informer/informer.ts';
import type { CacheEvent, WatchClient } from '../../../src/kube/types.ts';
import { ENDPOINTS, EVENTS, NAMESPACES, type KubeObject } from '../../../src/kube/object.ts';
import { isAlreadyExists, isConflict, isNotFound, StatusError } from '../../../src/kube/status-error.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { RecordedMetrics } from '../informer-harness.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import { testClient } from '../test-client.ts';

export interface ContractServer extends AsyncDisposable {
  readonly access: ServerAccess;
}

interface World extends AsyncDisposable {
  readonly client: WatchClient;
  readonly proxy: TcpProxy;
  /** A namespace of this test's own. */
  readonly namespace: string;
}

interface Follower extends AsyncDisposable {
  readonly informer: ObservableInformer;
  readonly events: CacheEvent[];
  readonly metrics: RecordedMetrics;
}

/** Registers the tests for one kind of server. */
export function clientContract(name: string, start: () => Promise<ContractServer>): void {
  describe(`the client against ${name}`, () => {
    const open = (): Promise<World> => openWorld(start);
    objectTests(open);
    listTests(open);
    informerTests(open);
    networkTests(open);
    otherTests(open);
  });
}

async function openWorld(start: () => Promise<ContractServer>): Promise<World> {
  const server = await start();
  const proxy = await TcpProxy.open(server.access.server);
  const client = testClient({ ...server.access, server: proxy.url });
  const namespace = `contract-${randomBytes(4).toString('hex')}`;
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  return {
    client,
    proxy,
    namespace,
    async [Symbol.asyncDispose]() {
      await client.delete(NAMESPACES, { namespace: '', name: namespace }, {}).catch(() => undefined);
      await client[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function follow(
  { client, namespace }: World,
  options: Partial<InformerOptions> = {},
): Promise<Follower> {
  const metrics = new RecordedMetrics();
  const informer = new CachingInformer({
    client,
    resource: ENDPOINTS,
    namespaces: [namespace],
    clock: systemClock,
    random: () => 0.01,
    logger: silentLogger,
    metrics,
    ...options,
  });
  const events: CacheEvent[] = [];
  informer.subscribe((event) => events.push(event));
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await informer.whenSynced(AbortSignal.timeout(60_000));
  return {
    informer,
    events,
    metrics,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

function endpoints(
  namespace: string,
  name: string,
  extra: Partial<KubeObject['metadata']> = {},
  addresses = 2,
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, namespace, ...extra },
    subsets: [
      {
        addresses: Array.from({ length: addresses }, (_, i) => ({
          ip: `10.1.${i >> 8}.${i & 255}`,
          targetRef: { kind: 'Pod', name: `p-${i}`, namespace },
        })),
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    ],
  };
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );
}

type Open = () => Promise<World>;

function objectTests(open: Open): void {
  test('an object is created, read, changed and deleted', async () => {
    await using world = await open();
    const { client, namespace } = world;
    const key = { namespace, name: 'a' };
    const created = await client.create(ENDPOINTS, endpoints(namespace, 'a', { labels: { x: 'y' } }), {
      fieldManager: 'contract',
    });
    expect(created.metadata).toMatchObject({ name: 'a', namespace, labels: { x: 'y' } });
    expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(created.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['contract']);
    expect(await client.get(ENDPOINTS, key)).toEqual(created);
    const updated = await client.update(ENDPOINTS, {
      ...created,
      metadata: { ...created.metadata, annotations: { 'a/b': 'ä' } },
    });
    expect(updated.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion);
    const body = {
      metadata: {
        resourceVersion: updated.metadata.resourceVersion ?? '',
        annotations: { 'a/b': null, c: 'd' },
      },
    };
    const patched = await client.patch(ENDPOINTS, key, { type: 'merge', body });
    expect(patched.metadata.annotations).toEqual({ c: 'd' });
    const json = [{ op: 'replace', path: '/metadata/annotations/c', value: 'e' }];
    expect((await client.patch(ENDPOINTS, key, { type: 'json', body: json })).metadata.annotations).toEqual({
      c: 'e',
    });
    await client.delete(ENDPOINTS, key, { uid: created.metadata.uid ?? '' });
    expect(isNotFound(await failure(client.get(ENDPOINTS, key)))).toBe(true);
  });

  test('preconditions are enforced', async () => {
    await using world = await open();
    const { client, namespace } = world;
    const key = { namespace, name: 'a' };
    const first = await client.create(ENDPOINTS, endpoints(namespace, 'a'));
    expect(isAlreadyExists(await failure(client.create(ENDPOINTS, endpoints(namespace, 'a'))))).toBe(true);
    await client.update(ENDPOINTS, { ...first, metadata: { ...first.metadata, labels: { n: '1' } } });
    expect(isConflict(await failure(client.update(ENDPOINTS, first)))).toBe(true);
    const body = { metadata: { resourceVersion: first.metadata.resourceVersion ?? '', labels: { n: '2' } } };
    expect(isConflict(await failure(client.patch(ENDPOINTS, key, { type: 'merge', body })))).toBe(true);
    const other = '00000000-0000-0000-0000-000000000000';
    expect(isConflict(await failure(client.delete(ENDPOINTS, key, { uid: other })))).toBe(true);
    expect(
      isConflict(await failure(client.update(ENDPOINTS, endpoints(namespace, 'a', { uid: other })))),
    ).toBe(true);
    expect((await client.get(ENDPOINTS, key)).metadata.labels).toEqual({ n: '1' });
  });

  test('error responses are Status errors', async () => {
    await using world = await open();
    const { client, namespace } = world;
    const lost = await failure(client.create(ENDPOINTS, endpoints('no-such-namespace', 'a')));
    expect(lost).toMatchObject({
      name: 'StatusError',
      code: 404,
      status: { details: { kind: 'namespaces' } },
    });
    const bad = endpoints(namespace, 'a', {}, 0);
    const invalid = await failure(
      client.create(ENDPOINTS, {
        ...bad,
        subsets: [{ addresses: [{ ip: 'nonsense' }], ports: [{ port: 1 }] }],
      }),
    );
    expect(invalid).toBeInstanceOf(StatusError);
    expect(invalid).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: expect.stringContaining('is invalid') as unknown,
    });
  });

  test('a thousand addresses are written and read', async () => {
    await using world = await open();
    const object = endpoints(world.namespace, 'large', {}, 1000);
    const created = await world.client.create(ENDPOINTS, object);
    expect(created['subsets']).toEqual(object['subsets']);
  });
}

function listTests(open: Open): void {
  test('lists have pages and label selectors', async () => {
    await using world = await open();
    const { client, namespace } = world;
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await client.create(
        ENDPOINTS,
        endpoints(namespace, name, { labels: { odd: String('ace'.includes(name)) } }),
      );
    }
    const names: string[] = [];
    let pages = 0;
    let continueToken = '';
    do {
      const page = await client.list(ENDPOINTS, { namespace, limit: 2, continueToken });
      names.push(...page.items.map(({ metadata }) => metadata.name));
      expect(page.items.every((item) => item.kind === 'Endpoints' && item.apiVersion === 'v1')).toBe(true);
      continueToken = page.continueToken;
      pages += 1;
    } while (continueToken !== '');
    expect([pages, names]).toEqual([3, ['a', 'b', 'c', 'd', 'e']]);
    const odd = await client.list(ENDPOINTS, { namespace, labelSelector: 'odd=true' });
    expect(odd.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'c', 'e']);
  });
}

function informerTests(open: Open): void {
  test('an informer receives changes, and writes of this process cause no second event', async () => {
    await using world = await open();
    const { client, namespace } = world;
    await client.create(ENDPOINTS, endpoints(namespace, 'before'));
    await using follower = await follow(world, { pageSize: 1 });
    const { informer, events } = follower;
    const own = await client.create(ENDPOINTS, endpoints(namespace, 'own'));
    informer.observeWrite(own);
    // The event may arrive before the response, but not after it.
    const isOwn = ({ key }: CacheEvent): boolean => key === `${namespace}/own`;
    const toldBefore = events.filter(isOwn).length;
    expect(informer.get(`${namespace}/own`)?.metadata.uid).toBe(own.metadata.uid);
    await client.create(ENDPOINTS, endpoints(namespace, 'foreign'));
    await client.delete(ENDPOINTS, { namespace, name: 'before' }, {});
    await expect.poll(() => events.length).toBeGreaterThanOrEqual(3 + toldBefore);
    informer.observeDelete(`${namespace}/own`, own.metadata.uid ?? '');
    await client.delete(ENDPOINTS, { namespace, name: 'own' }, {});
    await client.create(ENDPOINTS, endpoints(namespace, 'last'));
    await expect.poll(() => informer.get(`${namespace}/last`)).toBeDefined();
    const others = events.filter((event) => !isOwn(event));
    expect(others.map(({ type, key }) => `${type} ${key.split('/')[1]}`)).toEqual([
      'added before',
      'added foreign',
      'deleted before',
      'added last',
    ]);
    expect(events.filter(isOwn)).toHaveLength(toldBefore);
  });

  test('metadata can be watched alone', async () => {
    await using world = await open();
    const { client, namespace } = world;
    await client.create(ENDPOINTS, endpoints(namespace, 'a', { labels: { m: 'x' } }));
    await using follower = await follow(world, { isMetadataOnly: true, labelSelector: 'm=x' });
    await client.create(ENDPOINTS, endpoints(namespace, 'b', { labels: { m: 'x' } }));
    await client.create(ENDPOINTS, endpoints(namespace, 'c'));
    await expect.poll(() => follower.informer.size).toBe(2);
    for (const object of follower.informer.list()) expect(object).not.toHaveProperty('subsets');
  });
}

function networkTests(open: Open): void {
  test('after a connection reset during a watch no event is lost and nothing is listed again', async () => {
    await using world = await open();
    const { client, namespace, proxy } = world;
    await using follower = await follow(world);
    for (let round = 1; round <= 3; round++) {
      await expect.poll(() => follower.informer.condition.phase).toBe('watching');
      proxy.reset();
      await expect
        .poll(() => failure(client.create(ENDPOINTS, endpoints(namespace, `r${round}`))))
        .not.toBeInstanceOf(Error);
      await expect.poll(() => follower.informer.size).toBe(round);
    }
    const listed = follower.metrics.ends.filter(({ phase }) => phase === 'listing');
    expect(listed).toEqual([{ phase: 'listing', outcome: 'complete' }]);
  });

  test('the informer reports an unavailable server until it is available again', async () => {
    await using world = await open();
    const { client, namespace, proxy } = world;
    await using follower = await follow(world);
    await proxy.stop();
    await expect
      .poll(() => follower.metrics.ends)
      .toContainEqual(expect.objectContaining({ outcome: 'unreachable' }));
    expect(follower.informer.condition.lastError).toMatch(/connection refused/);
    expect(await failure(client.get(NAMESPACES, { namespace: '', name: namespace }))).toMatchObject({
      name: 'TransportError',
    });
    await proxy.resume();
    await client.create(ENDPOINTS, endpoints(namespace, 'after'));
    await expect.poll(() => follower.informer.size).toBe(1);
    expect(follower.informer.condition.lastError).toBeUndefined();
  });
}

function otherTests(open: Open): void {
  test('repeated Events are sent as a series', async () => {
    await using world = await open();
    const { client, namespace } = world;
    const about = await client.create(ENDPOINTS, endpoints(namespace, 'a'));
    const results: string[] = [];
    const recorder = new AggregatingRecorder({
      client,
      reportingController: 'endpoint-syncer/contract',
      reportingInstance: 'contract',
      clock: systemClock,
      random: Math.random,
      logger: silentLogger,
      metrics: { event: (result) => results.push(result) },
      limit: new EventSeriesLimit(),
    });
    recorder.event(about, ENDPOINTS, { type: 'Warning', reason: 'PatchFailed', note: 'ä'.repeat(2000) });
    await recorder.flush();
    recorder.event(about, ENDPOINTS, { type: 'Warning', reason: 'PatchFailed', note: 'ä'.repeat(2000) });
    recorder.event(about, ENDPOINTS, { type: 'Normal', reason: 'Synced', note: 'first time' });
    await recorder.flush();
    expect(results).toEqual(['sent', 'sent', 'sent']);
    const { items } = await client.list(EVENTS, { namespace });
    const shown = items.map((event) => ({
      reason: event['reason'],
      type: event['type'],
      series: event['series'],
      regarding: event['regarding'],
    }));
    const regarding = expect.objectContaining({
      kind: 'Endpoints',
      namespace,
      name: 'a',
      uid: about.metadata.uid,
    }) as unknown;
    expect(shown).toHaveLength(2);
    expect(shown).toContainEqual({
      reason: 'PatchFailed',
      type: 'Warning',
      series: expect.objectContaining({ count: 2 }) as unknown,
      regarding,
    });
    expect(shown).toContainEqual({ reason: 'Synced', type: 'Normal', series: undefined, regarding });
  });

  test('discovery and access reviews work', async () => {
    await using world = await open();
    const discovery = new CachingDiscovery(world.client);
    expect(await discovery.resolve('v1', 'Endpoints')).toEqual(ENDPOINTS);
    expect(await discovery.resolve('v1', 'Namespace')).toMatchObject({
      plural: 'namespaces',
      isNamespaced: false,
    });
    const wanted = [{ verb: 'list', group: '', resource: 'endpoints', namespace: world.namespace }];
    expect(await missingRights(world.client, wanted)).toEqual([]);
  });
}
