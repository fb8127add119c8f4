/** Other Secrets in the namespace of the store, and damaged ones. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type EmbeddedCluster,
  startEmbeddedCluster,
} from '../../../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../../../src/kube/access.ts';
import { type KubeObject, SECRETS } from '../../../../src/kube/object.ts';
import { SecretNames, encodeSecret } from '../../../../src/apiserver/storage/secrets/secret-codec.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import { type LogFields, type Logger, silentLogger } from '../../../../src/base/logger.ts';
import type { StoreEvent, StoreKey } from '../../../../src/apiserver/storage/store.ts';
import { verifySecrets } from '../../../../src/apiserver/storage/secrets/kubernetes-store.ts';
import { systemClock } from '../../../../src/base/clock.ts';
import { systemRandom } from '../../../../src/base/random.ts';
import { TransportError, type WatchClient } from '../../../../src/kube/types.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { until } from '../../../kube/informer-harness.ts';
import { type Replica, openReplica } from './replicas.ts';

const names = new SecretNames('main');

describe('a namespace that other programs use too', () => {
  let cluster: EmbeddedCluster;
  let replica: Replica;
  let warnings: LogFields[];
  const thing = (name: string): StoreKey => ({ resource: 'things', namespace: '', name });

  beforeEach(async () => {
    warnings = [];
    const logger: Logger = {
      ...silentLogger,
      warn: (fields) => void warnings.push(fields),
      child: () => logger,
    };
    cluster = await startEmbeddedCluster({ name: 'host' });
    replica = await openReplica(plainAccess(cluster.url), { name: 'main', logger });
  });

  afterEach(async () => {
    await replica[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  async function secretOf(name: string): Promise<KubeObject> {
    return await replica.client.get(SECRETS, { namespace: 'default', name: names.object(thing(name)) });
  }

  async function change(name: string, body: JsonObject): Promise<void> {
    const key = { namespace: 'default', name: names.object(thing(name)) };
    await replica.client.patch(SECRETS, key, { type: 'merge', body });
  }

  async function listed(): Promise<string[]> {
    const { entries } = await replica.store.list({ resource: 'things' });
    return entries.map(({ key }) => key.name);
  }

  test('Secrets of other programs and stores are not visible', async () => {
    const { store, client } = replica;
    await client.create(SECRETS, { metadata: { name: 'foreign', namespace: 'default' } });
    await client.create(SECRETS, {
      metadata: {
        name: 'helm',
        namespace: 'default',
        labels: { 'app.kubernetes.io/managed-by': 'endpoint-syncer', 'endpoint-syncer/store': 'main' },
      },
    });
    await using other = await openReplica(plainAccess(cluster.url), { name: 'other' });
    await other.store.create(thing('a'), { whose: 'other' });
    await store.create(thing('a'), { whose: 'main' });
    expect((await store.get(thing('a')))?.value).toEqual({ whose: 'main' });
    expect((await other.store.get(thing('a')))?.value).toEqual({ whose: 'other' });
    expect(await listed()).toEqual(['a']);
    expect(warnings).toEqual([]);
  });

  test('changes by other programs to a Secret are kept', async () => {
    const { store } = replica;
    const { revision } = await store.create(thing('a'), { x: 1 });
    await change('a', { metadata: { labels: { backup: 'yes' }, annotations: { 'who/else': '1' } } });
    const moved = await store.get(thing('a'));
    expect(moved?.revision).toBeGreaterThan(revision);
    await store.update(thing('a'), { x: 2 }, moved?.revision ?? 0);
    expect((await secretOf('a')).metadata).toMatchObject({
      labels: { backup: 'yes' },
      annotations: { 'who/else': '1' },
    });
  });

  test('a damaged Secret is in no list, named in errors and once in the log, never overwritten, and readable after a repair', async () => {
    const { store } = replica;
    const events: StoreEvent[] = [];
    await store.create(thing('b'), {});
    const { revision } = await store.create(thing('a'), { x: 1 });
    await store.watch({ resource: 'things' }, revision, {
      event: (e) => events.push(e),
      end: () => undefined,
    });
    const good = (await secretOf('a'))['data'] as JsonObject;
    const bad = Buffer.from('{"x": tru').toString('base64');
    await change('a', { data: { object: bad } });
    await until(() => events.length === 1);
    expect(events[0]).toMatchObject({ type: 'deleted', previous: { value: { x: 1 } } });
    expect(await listed()).toEqual(['b']);
    const refusal = {
      code: 'unavailable',
      message:
        `things /a: its Secret ${names.object(thing('a'))} cannot be read, data.object is not JSON: ` +
        'restore it from a backup, or delete it',
    };
    await expect(store.get(thing('a'))).rejects.toMatchObject(refusal);
    await expect(store.create(thing('a'), { x: 2 })).rejects.toMatchObject(refusal);
    await expect(store.update(thing('a'), { x: 2 }, revision)).rejects.toMatchObject(refusal);
    await expect(store.delete(thing('a'), revision)).rejects.toMatchObject(refusal);
    expect((await secretOf('a'))['data']).toEqual({ object: bad });
    expect(warnings).toEqual([
      { secret: names.object(thing('a')), namespace: 'default', why: 'data.object is not JSON' },
    ]);
    await change('a', { data: good });
    await until(() => events.length === 2);
    expect(events[1]).toMatchObject({ type: 'created', entry: { value: { x: 1 } } });
    expect((await store.get(thing('a')))?.value).toEqual({ x: 1 });
  });

  test('a copy of a Secret with another name or other labels is not an object', async () => {
    const { store, client } = replica;
    await store.create(thing('a'), { x: 1 });
    const { metadata, ...rest } = await secretOf('a');
    const { labels = {} } = metadata;
    await client.create(SECRETS, { ...rest, metadata: { name: 'copy', namespace: 'default', labels } });
    expect(await listed()).toEqual(['a']);
    await change('a', { metadata: { labels: { 'endpoint-syncer/namespace': 'elsewhere' } } });
    await expect(store.get(thing('a'))).rejects.toThrow('its labels are not those of things /a');
    expect(warnings.map(({ why }) => why)).toEqual([
      'it holds things /a, which has another name',
      'its labels are not those of things /a',
    ]);
  });

  test('a Secret with forged labels and type is neither an object nor notes, and does not disturb the store', async () => {
    const { store, client } = replica;
    await store.create(thing('a'), { x: 1 });
    await store.notes('seen').write(new Map([['a', 'real']]));
    const { items } = await client.list(SECRETS, { namespace: 'default' });
    for (const [index, { metadata, ...rest }] of items.entries()) {
      const { labels = {} } = metadata;
      const notes = Buffer.from('[["a","forged"]]').toString('base64');
      const data = rest['type'] === 'endpoint-syncer/notes' ? { notes } : { object: 'bm90IEpTT04=' };
      const name = `forged-${index}-x-default-x-vc`;
      await client.create(SECRETS, { ...rest, data, metadata: { name, namespace: 'default', labels } });
    }
    await using other = await openReplica(plainAccess(cluster.url), { name: 'main' });
    expect(await other.store.notes('seen').read()).toEqual(new Map([['a', 'real']]));
    expect(await listed()).toEqual(['a']);
    const options = { clock: systemClock, random: systemRandom };
    const verdict = await verifySecrets({ client, namespace: 'default', name: 'main', ...options });
    expect(verdict).toMatchObject({ problems: [], objects: 1 });
  });

  test('a host that takes 20 s for a list is verified', async () => {
    const { store, client } = replica;
    await store.create(thing('a'), { x: 1 });
    await store.notes('seen').write(new Map([['a', 'real']]));
    const clock = new FakeClock();
    const slow: Pick<WatchClient, 'request'> = {
      async request(method, path, body, options = {}) {
        clock.advance(20_000);
        if ((options.timeoutMs ?? 0) < 20_000) throw new TransportError('it took more than 20 s');
        return client.request(method, path, body, options);
      },
    };
    const options = { namespace: 'default', name: 'main', clock, random: () => 0 };
    const verdict = await verifySecrets({
      client: Object.assign(Object.create(client) as WatchClient, slow),
      ...options,
    });
    expect(verdict).toMatchObject({ problems: [], objects: 1 });
  });

  test('a Secret of another type with the name of an object is not the object', async () => {
    const { store, client } = replica;
    const secret = await encodeSecret(names, { key: thing('a'), value: { x: 1 }, writeId: 'w' });
    const metadata = { ...secret.metadata, namespace: 'default' };
    await client.create(SECRETS, { ...secret, metadata, type: 'Opaque' });
    await expect(store.get(thing('a'))).rejects.toThrow('its type is not endpoint-syncer/object');
    expect(await listed()).toEqual([]);
  });

  test('a finalizer on a Secret does not keep a deleted object', async () => {
    const { store } = replica;
    const events: StoreEvent[] = [];
    await store.create(thing('a'), { x: 1 });
    await change('a', { metadata: { finalizers: ['example.com/hold'] } });
    const held = await store.get(thing('a'));
    const revision = held?.revision ?? 0;
    await store.watch({ resource: 'things' }, revision, {
      event: (e) => events.push(e),
      end: () => undefined,
    });
    const deleted = await store.delete(thing('a'), revision);
    await until(() => events.length === 1);
    expect(events[0]).toMatchObject({ type: 'deleted', revision: deleted.revision });
    expect(await store.get(thing('a'))).toBeUndefined();
    expect(await listed()).toEqual([]);
    const creating = store.create(thing('a'), {});
    await expect(creating).rejects.toMatchObject({ code: 'unavailable' });
    await expect(creating).rejects.toThrow(
      `${names.object(thing('a'))} is being deleted but has a finalizer`,
    );
    await change('a', { metadata: { finalizers: null } });
    await store.create(thing('a'), { x: 2 });
    await until(() => events.length === 2);
    expect(events[1]).toMatchObject({ type: 'created', entry: { value: { x: 2 } } });
  });
});
