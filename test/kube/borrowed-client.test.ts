/** A client on the connections of another one: what its end ends. */

import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { borrowedClient } from '../../src/kube/borrowed-client.ts';
import { createClient } from '../../src/kube/client/client.ts';
import { NAMESPACES } from '../../src/kube/object.ts';
import { TransportError } from '../../src/kube/types.ts';

test('its end aborts its own requests, and leaves the connections to the others', async () => {
  await using cluster = await startEmbeddedCluster({ name: 'host' });
  await using client = createClient({
    cluster: 'host',
    access: {
      server: cluster.url,
      namespace: '',
      description: 'a test',
      proxyUrl: undefined,
      credentials: { headers: () => ({}), certificate: async () => undefined, invalidate: () => false },
      trust: () => ({ isUnverified: false }),
    },
    clock: systemClock,
    metrics: { requested: () => undefined },
    userAgent: 'test',
  });
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
