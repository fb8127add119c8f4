/** Access whose source changes while the program runs: a Secret, or a file that a kubelet or an operator replaces. */

import type { Clock } from '../../base/clock.ts';
import type { Credentials, ServerAccess } from '../access.ts';

interface RenewalOptions {
  readonly clock: Clock;
  /** Age after which the source is read again for a request or a connection. */
  readonly lifeMs: number;
  /** The shortest time between two readings after a refusal or a failure. */
  readonly pauseMs: number;
}

/**
 * `read` returns the same object where nothing has changed. It may fail: what was read before may still be valid, and if it is not, the server
 * says so. Certificates, token and authority count from the next connection or request on, and so does another server.
 */
export function renewedAccess(
  first: ServerAccess,
  read: () => ServerAccess | Promise<ServerAccess>,
  { clock, lifeMs, pauseMs }: RenewalOptions,
): ServerAccess {
  let access = first;
  let readAtMs = clock.monotonicMs();
  const keep = (next: ServerAccess): ServerAccess => (access = next);
  const keepOld = (): ServerAccess => access;
  const current = (): ServerAccess | Promise<ServerAccess> => {
    if (clock.monotonicMs() - readAtMs < lifeMs) return access;
    readAtMs = clock.monotonicMs();
    try {
      const next = read();
      return next instanceof Promise ? next.then(keep, keepOld) : keep(next);
    } catch {
      return access;
    }
  };
  /** Returns true if the next request reads the source again. */
  const outdated = (): boolean => {
    const mayDiffer = clock.monotonicMs() - readAtMs > pauseMs;
    if (mayDiffer) readAtMs = -Infinity;
    return mayDiffer;
  };
  const credentials: Credentials = {
    headers() {
      const next = current();
      return next instanceof Promise
        ? next.then((renewed) => renewed.credentials.headers())
        : next.credentials.headers();
    },
    certificate: async () => (await current()).credentials.certificate(),
    invalidate() {
      const mayDiffer = outdated();
      return access.credentials.invalidate() || mayDiffer;
    },
  };
  return {
    ...first,
    get server() {
      return access.server;
    },
    get proxyUrl() {
      return access.proxyUrl;
    },
    credentials,
    trust: async () => (await current()).trust(),
    unreachable: () => void outdated(),
  };
}
