/** A client on the connections of another one: what its end ends. */

import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { borrowedClient } from '../../src/kube/borrowed-client.ts';
import { NAMESPACES, type KubeObject } from '../../src/kube/object.ts';
import { TransportError } from '../../src/kube/types.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { listen } from '../support/listen.ts';
import { until } from './informer-harness.ts';
import { testClient } from './test-client.ts';

/** A server whose requests for names that begin with `hangs` wait until the test answers them. */
async function hangingServer(connections: number) {
  const waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    const name = request.url?.split('/').at(-1) ?? '';
    const metadata = { name, uid: 'u', resourceVersion: '1' };
    const answer = (): void =>
      void response.end(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }));
    if (name.startsWith('hangs')) waiting.push(answer);
    else answer();
  });
  const client = testClient(`http://127.0.0.1:${await listen(server)}`, { connections });
  return {
    client,
    waiting,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function get(borrower: ReturnType<typeof borrowedClient>, name: string): Promise<KubeObject> {
  return borrower.get(NAMESPACES, { namespace: '', name });
}

test('has as many requests in flight as it may, and those of other borrowers do not wait for them', async () => {
  await using server = await hangingServer(4);
  const { client, waiting } = server;
  const [hostile, other] = [borrowedClient(client, { requestsMax: 3 }), borrowedClient(client)];
  const hanging = Array.from({ length: 10 }, (_, at) => get(hostile, `hangs-${at}`));
  await until(() => waiting.length === 3);
  for (let at = 0; at < 20; at++) expect((await get(other, 'fine')).metadata.name).toBe('fine');
  expect(waiting).toHaveLength(3);
  for (let answered = 0; answered < 10; answered++) {
    await until(() => waiting.length > 0);
    waiting.shift()?.();
  }
  expect((await Promise.all(hanging)).map(({ metadata }) => metadata.name)).toContain('hangs-9');
});

test('requests that hang are not counted, however many borrowers have them', async () => {
  const clock = new FakeClock();
  await using server = await hangingServer(100);
  const { client, waiting } = server;
  const shared = borrowedClient(client, { requestsMax: 8, hanging: { afterMs: 1000, clock } });
  const hostile = Array.from({ length: 16 }, () => borrowedClient(shared, { requestsMax: 2 }));
  const hanging = hostile.flatMap((one) => [get(one, 'hangs'), get(one, 'hangs'), get(one, 'hangs')]);
  const ended = Promise.allSettled(hanging);
  const other = get(borrowedClient(shared, { requestsMax: 2 }), 'fine');
  // Eight at a time, then the one that waits behind them.
  for (const sent of [8, 16, 24, 32]) {
    await until(() => waiting.length === sent);
    clock.advance(1000);
  }
  expect((await other).metadata.name).toBe('fine');
  // Each still has its own requests in flight, and no more.
  expect(waiting).toHaveLength(32);
  await shared[Symbol.asyncDispose]();
  await client[Symbol.asyncDispose]();
  expect((await ended).filter(({ status }) => status === 'rejected')).toHaveLength(48);
});

test('its end aborts its own requests, and leaves the connections to the others', async () => {
  await using cluster = await startEmbeddedCluster({ name: 'host' });
  await using client = testClient(cluster.url);
  const [one, two] = [borrowedClient(client), borrowedClient(client)];
  const { resourceVersion } = await one.list(NAMESPACES);
  const watching = (
    borrower: typeof one,
  ): { readonly started: Promise<void>; readonly ended: Promise<unknown> } => {
    const started = Promise.withResolvers<void>();
    const handler = {
      started: () => started.resolve(),
      dataReceived: () => undefined,
      event: () => undefined,
    };
    const ended = borrower.watch(NAMESPACES, { resourceVersion }, handler).catch((error: unknown) => error);
    return { started: started.promise, ended };
  };
  const [first, second] = [watching(one), watching(two)];
  await Promise.all([first.started, second.started]);
  await one[Symbol.asyncDispose]();
  // Not a defect of this program.
  expect(await first.ended).toBeInstanceOf(TransportError);
  await expect(one.get(NAMESPACES, { namespace: '', name: 'default' })).rejects.toThrow(
    'this client is closed',
  );
  expect((await two.get(NAMESPACES, { namespace: '', name: 'default' })).metadata.name).toBe('default');
  await two[Symbol.asyncDispose]();
  await second.ended;
});

test('writes as often as it may, in order, and reads at any time', async () => {
  const clock = new FakeClock();
  await using cluster = await startEmbeddedCluster({ name: 'host' });
  await using client = testClient(cluster.url);
  const borrower = borrowedClient(client, { writeRate: { rate: { burst: 2, perSecond: 1 }, clock } });
  const stored: string[] = [];
  const writing = ['a', 'b', 'c', 'd'].map(async (name) => {
    await borrower.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    stored.push(name);
  });
  await until(() => stored.length === 2 && clock.nextDelayMs === 1000);
  await borrower.get(NAMESPACES, { namespace: '', name: 'default' });
  expect(stored.toSorted()).toEqual(['a', 'b']);
  clock.advance(1000);
  await until(() => stored.length === 3 && clock.nextDelayMs === 1000);
  expect(stored.at(-1)).toBe('c');
  await borrower[Symbol.asyncDispose]();
  await expect(Promise.all(writing)).rejects.toThrow('this client is closed');
});
