/** The state of the cache after a write with an unusable response. */

import { beforeEach, describe, expect, test } from 'vitest';
import { createSemaphore } from '../../../src/base/semaphore.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { ENDPOINTS, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { failure, isConflict, type StatusError } from '../../../src/kube/status-error.ts';
import {
  MalformedResponseError,
  TransportError,
  type ClusterClient,
  type ClusterName,
} from '../../../src/kube/types.ts';
import { outcomeOf } from '../../../src/syncer/reconcile/controller.ts';
import { createWriter, type Writer } from '../../../src/syncer/reconcile/writer.ts';

const KEY = { namespace: 'ns', name: 'a' };

function stored(resourceVersion: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...KEY, uid: 'u', resourceVersion },
  };
}

const notFound = failure(404, 'NotFound', 'NotFound');

const WRITES: [string, (writer: Writer) => Promise<unknown>][] = [
  ['create', (writer) => writer.create(stored(''), 'test')],
  ['update', (writer) => writer.update(stored('1'), 'test')],
  ['patch', (writer) => writer.mergePatch(KEY, {}, 'test')],
  ['delete', (writer) => writer.delete(KEY, 'u', 'test')],
];

describe('a write whose response is not the object', () => {
  const cache = new Map<string, KubeObject>();
  /** Keys of the published changes. */
  const published: string[] = [];
  beforeEach(() => {
    published.length = 0;
    cache.clear();
    cache.set('ns/a', stored('1'));
  });

  /** Every write is answered wrongly, or not at all; reads get what the API server holds. */
  function writerOn(
    held: KubeObject | undefined,
    error: Error = new MalformedResponseError('nonsense'),
    cluster: ClusterName = 'host',
  ): Writer {
    const fail = (): Promise<never> => Promise.reject(error);
    const client: ClusterClient = {
      cluster,
      get: () => (held === undefined ? Promise.reject(notFound) : Promise.resolve(held)),
      list: fail,
      create: fail,
      update: fail,
      patch: fail,
      delete: fail,
      request: fail,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    return createWriter({
      client,
      resource: ENDPOINTS,
      cache: {
        observeWrite: (object) => void cache.set(objectKey(object), object),
        observeDelete: (key) => void cache.delete(key),
        observeRead: (object) => {
          cache.set(objectKey(object), object);
          published.push(objectKey(object));
        },
        observeAbsence: (key) => {
          cache.delete(key);
          published.push(key);
        },
      },
      inFlight: createSemaphore(1),
      dryRun: undefined,
      logger: silentLogger,
      metrics: { sync: { written: () => undefined, forbidden: () => undefined } },
    });
  }

  test.each(WRITES)(
    '%s: the cache gets what the API server holds, the caller decides again',
    async (_, write) => {
      await expect(write(writerOn(stored('2')))).rejects.toBeInstanceOf(MalformedResponseError);
      expect(cache.get('ns/a')?.metadata.resourceVersion).toBe('2');
      // Another client may have made the change, and other objects may depend on it.
      expect(published).toEqual(['ns/a']);
    },
  );

  test.each(WRITES.filter(([verb]) => verb === 'update' || verb === 'delete'))(
    '%s: an object that is gone goes from the cache',
    async (_, write) => {
      await expect(write(writerOn(undefined))).rejects.toBeInstanceOf(MalformedResponseError);
      expect(cache.has('ns/a')).toBe(false);
      expect(published).toEqual(['ns/a']);
    },
  );

  test('a patch with the uid of an object that is gone is a conflict', async () => {
    const cause = { field: 'metadata.uid', message: 'Invalid value: "u": field is immutable' };
    const invalid = failure(422, 'Invalid', 'invalid', { causes: [cause] });
    const patch = writerOn(stored('2'), invalid).mergePatch(KEY, {}, 'test');
    await expect(patch).rejects.toSatisfy(isConflict);
  });

  const forbidden = (): StatusError => failure(403, 'Forbidden', 'Forbidden');
  test.each([
    ['virtual', forbidden(), 'Writing to the virtual cluster failed and is retried: Forbidden'],
    ['host', forbidden(), 'Writing to the host failed and is retried: Forbidden'],
    [
      'virtual',
      new TransportError('refused'),
      'Writing to the virtual cluster failed and is retried: refused',
    ],
  ] as const)('%s: %o is reported with its cluster', async (cluster, error, note) => {
    const thrown: unknown = await writerOn(undefined, error, cluster)
      .mergePatch(KEY, {}, 'test')
      .catch((reason: unknown) => reason);
    expect(outcomeOf(thrown, 9, '').warning).toEqual({ reason: 'SyncError', note });
  });

  test('without a response nothing is read, because the server may be unavailable', async () => {
    const writer = writerOn(stored('2'), new TransportError('no answer'));
    await expect(writer.update(stored('1'), 'test')).rejects.toBeInstanceOf(TransportError);
    expect(cache.get('ns/a')?.metadata.resourceVersion).toBe('1');
  });
});

describe('a write whose precondition is a version', () => {
  const replaced = { metadata: { resourceVersion: '1' } };

  test.each([
    { what: 'the watch works', isBroken: false, isKnown: false, isSent: true },
    {
      what: 'the watch is broken, and the object is as it was seen',
      isBroken: true,
      isKnown: true,
      isSent: true,
    },
    {
      what: 'the server was restored, and gave the version again',
      isBroken: true,
      isKnown: false,
      isSent: false,
    },
  ])('$what: sent is $isSent', async ({ isBroken, isKnown, isSent }) => {
    const sent: string[] = [];
    const answer = (verb: string) => async (): Promise<KubeObject> => {
      sent.push(verb);
      return stored('2');
    };
    const unused = async (): Promise<never> => expect.unreachable();
    const writer = createWriter({
      client: {
        cluster: 'host',
        get: async () => stored('1'),
        update: answer('update'),
        patch: answer('patch'),
        list: unused,
        create: unused,
        delete: unused,
        request: unused,
        [Symbol.asyncDispose]: async () => undefined,
      },
      resource: ENDPOINTS,
      cache: {
        mayBeRestored: () => isBroken,
        confirms: () => isKnown,
        observeWrite: () => undefined,
        observeDelete: () => undefined,
        observeRead: () => undefined,
        observeAbsence: () => undefined,
      },
      inFlight: createSemaphore(1),
      dryRun: undefined,
      logger: silentLogger,
      metrics: { sync: { written: () => undefined, forbidden: () => undefined } },
    });
    const writes = [writer.update(stored('1'), 'test'), writer.mergePatch(KEY, replaced, 'test')];
    for (const result of await Promise.allSettled(writes))
      expect(result.status === 'fulfilled' || isConflict(result.reason)).toBe(true);
    expect(sent).toEqual(isSent ? ['update', 'patch'] : []);
  });
});
