/** A client on the clock of the system, whose metrics no test reads. */

import { systemClock } from '../../src/base/clock.ts';
import { plainAccess, type ServerAccess } from '../../src/kube/access.ts';
import { RestClient, type ClientOptions } from '../../src/kube/client/client.ts';
import type { WatchClient } from '../../src/kube/types.ts';

export function testClient(access: ServerAccess | string, options: Partial<ClientOptions> = {}): WatchClient {
  return new RestClient({
    cluster: 'host',
    access: typeof access === 'string' ? plainAccess(access) : access,
    clock: systemClock,
    metrics: { requested: () => undefined },
    userAgent: 'test',
    ...options,
  });
}
