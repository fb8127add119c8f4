/** Leases on a slow or unavailable API server, and processes that are suspended. */

import { sleep, type Clock, type Timer } from '../../src/base/clock.ts';
import type { KubeObject, NamespacedName } from '../../src/kube/object.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { TransportError, type ClusterClient } from '../../src/kube/types.ts';
import type { FakeClock } from './fake-clock.ts';

export class LeaseServer {
  readonly stored = new Map<string, KubeObject>();
  isAway = false;
  #version = 0;

  write(object: KubeObject): KubeObject {
    const resourceVersion = String(++this.#version);
    const written = { ...object, metadata: { ...object.metadata, resourceVersion } };
    this.stored.set(object.metadata.name, written);
    return written;
  }

  holderOf(name: string): unknown {
    const spec = this.stored.get(name)?.['spec'];
    return (spec as { holderIdentity?: string } | undefined)?.holderIdentity; // a Lease
  }
}

/** The time of one process: its own wall clock, and timers that fire late after a pause. */
export class ProcessClock implements Clock {
  readonly #base: FakeClock;
  readonly #offMs: number;
  #withheld: (() => void)[] | undefined;

  constructor(base: FakeClock, offMs: number) {
    this.#base = base;
    this.#offMs = offMs;
  }

  now(): number {
    return this.#base.now() + this.#offMs;
  }

  monotonicMs(): number {
    return this.#base.monotonicMs();
  }

  schedule(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    const run = (): void => void (isCancelled || callback());
    const timer = this.#base.schedule(delayMs, () => {
      if (this.#withheld === undefined) run();
      else this.#withheld.push(run);
    });
    return {
      cancel() {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  pause(): void {
    this.#withheld ??= [];
  }

  resume(): void {
    const due = this.#withheld ?? [];
    this.#withheld = undefined;
    for (const run of due) run();
  }
}

function failure(code: number, reason: string): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason,
    code,
    message: reason,
  });
}

/** The requests of one process: each takes `latencyMs` in both directions. */
export function leaseClient(server: LeaseServer, clock: Clock, latencyMs: number): ClusterClient {
  const never = new AbortController().signal;
  const exchange = async <T>(act: () => T, timeoutMs = Infinity): Promise<T> => {
    await sleep(clock, latencyMs, never);
    if (2 * latencyMs > timeoutMs) throw new TransportError('no answer in time');
    if (server.isAway) throw new TransportError('no answer');
    const answer = act();
    await sleep(clock, latencyMs, never);
    return answer;
  };
  const existing = ({ name }: Pick<NamespacedName, 'name'>, resourceVersion: string | undefined) => {
    const stored = server.stored.get(name);
    if (stored === undefined) throw failure(404, 'NotFound');
    if (resourceVersion !== undefined && stored.metadata.resourceVersion !== resourceVersion)
      throw failure(409, 'Conflict');
    return stored;
  };
  return {
    get: (_, key, options) => exchange(() => existing(key, undefined), options?.timeoutMs),
    list: () =>
      exchange(() => ({ items: [...server.stored.values()], resourceVersion: '1', continueToken: '' })),
    create: (_, object) =>
      exchange(() => {
        if (server.stored.has(object.metadata.name)) throw failure(409, 'AlreadyExists');
        return server.write(object);
      }),
    update: (_, object) =>
      exchange(() => {
        existing(object.metadata, object.metadata.resourceVersion);
        return server.write(object);
      }),
    delete: (_, key, preconditions) =>
      exchange(() => {
        existing(key, preconditions?.resourceVersion);
        server.stored.delete(key.name);
      }),
  } as Partial<ClusterClient> as ClusterClient; // what locks need
}
