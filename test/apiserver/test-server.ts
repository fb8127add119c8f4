/** The generic API server with the kinds of a test, without a cluster and namespaces. */

import { afterEach } from 'vitest';
import { allowEverything } from '../../src/apiserver/request/request-info.ts';
import { startServer, type RunningServer, type StartOptions } from '../../src/apiserver/http/api-server.ts';
import { ObjectRegistry } from '../../src/apiserver/objects/object-registry.ts';
import type { DefinitionTable } from '../../src/apiserver/objects/resource-definition.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { type Random, systemRandom } from '../../src/base/random.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { userNamed } from '../../src/apiserver/user.ts';
import { MemoryStore } from '../../src/apiserver/storage/revisioned-store.ts';
import { RawClient } from '../contract/raw-client.ts';

export interface TestServer extends AsyncDisposable {
  readonly client: RawClient;
  readonly store: MemoryStore;
  readonly server: RunningServer;
}

export interface TestServerOptions extends Partial<Omit<StartOptions, 'registry'>> {
  table: DefinitionTable;
  store?: MemoryStore;
  clock?: Clock;
  random?: Random;
}

export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const store = options.store ?? new MemoryStore();
  const { clock = systemClock, random = systemRandom } = options;
  const registry = new ObjectRegistry({
    store,
    clock,
    random,
    admission: { admit: () => Promise.resolve() },
  });
  const server = await startServer({
    registry,
    logger: silentLogger,
    authorizer: allowEverything,
    authenticate: ({ authorization }) => userNamed(authorization?.replace('Bearer ', '') ?? 'nobody'),
    version: { major: '1', minor: '32', gitVersion: 'v1.32.1' },
    ...options,
  });
  const client = new RawClient({ url: `http://${server.address}` });
  return {
    client,
    store,
    server,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      registry.close();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Starts servers of these kinds that are closed after each test of the file that calls this. */
export function serversOfEachTest(table: () => DefinitionTable) {
  const open: TestServer[] = [];
  afterEach(async () => {
    for (const api of open.splice(0)) await api[Symbol.asyncDispose]();
  });
  return async (more: Partial<TestServerOptions> = {}): Promise<TestServer> => {
    const api = await startTestServer({ table: table(), ...more });
    open.push(api);
    return api;
  };
}
