/** The fixture of most tests of this folder: a scripted server, a fake clock, and an informer. */

import {
  CachingInformer,
  type InformerMetrics,
  type InformerOptions,
  type ObservableInformer,
} from '../../src/kube/informer/informer.ts';
import type { Outcome, Phase } from '../../src/kube/informer/transitions.ts';
import type { CacheEvent, WatchClient } from '../../src/kube/types.ts';
import { ENDPOINTS } from '../../src/kube/object.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { ScriptedServer } from './scripted-server.ts';
import { testClient } from './test-client.ts';

export class RecordedMetrics implements InformerMetrics {
  readonly ends: { phase: Phase; outcome: Outcome }[] = [];
  readonly expected: string[] = [];
  readonly types: string[] = [];
  ignoredCount = 0;

  expect(phase: Phase, outcome: Outcome): void {
    this.expected.push(`${phase} ${outcome}`);
  }
  ended(phase: Phase, outcome: Outcome): void {
    this.ends.push({ phase, outcome });
  }
  received(type: string): void {
    this.types.push(type);
  }
  ignored(): void {
    this.ignoredCount += 1;
  }
  watchState(): () => void {
    return () => undefined;
  }
}

export interface InformerHarness extends AsyncDisposable {
  readonly server: ScriptedServer;
  readonly clock: FakeClock;
  readonly client: WatchClient;
  readonly metrics: RecordedMetrics;
  readonly informer: ObservableInformer;
  readonly events: CacheEvent[];
  /** Runs the informer until the fixture is disposed. */
  start(): void;
}

export async function prepare(
  options: Partial<InformerOptions> & { responseBytesMax?: number } = {},
): Promise<InformerHarness> {
  const server = await ScriptedServer.start();
  const clock = new FakeClock();
  const metrics = new RecordedMetrics();
  const client = testClient(server.url, {
    clock,
    ...(options.responseBytesMax === undefined ? {} : { responseBytesMax: options.responseBytesMax }),
  });
  const informer = new CachingInformer({
    client,
    resource: ENDPOINTS,
    clock,
    random: () => 0.5,
    logger: silentLogger,
    metrics,
    ...options,
  });
  const events: CacheEvent[] = [];
  informer.subscribe((event) => events.push(event));
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  return {
    server,
    clock,
    client,
    metrics,
    informer,
    events,
    start() {
      running = informer.run(stop.signal);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await client[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Waits for a condition that the event loop brings about; fails after a minute of real time. */
export async function until(condition: () => boolean, what = condition.toString()): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Lets pending socket events be processed. */
export async function quiet(turns = 20): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Name → version of the objects in the cache. */
export function contents(informer: ObservableInformer): Record<string, string> {
  const pairs = [...informer.list()].map(
    ({ metadata }) => [metadata.name, metadata.resourceVersion ?? ''] as const,
  );
  return Object.fromEntries(pairs);
}

/** Type, key and version of the events that the informer published, in order. */
export function published({ events }: Pick<InformerHarness, 'events'>): unknown[] {
  return events.map(({ type, key, object }) => [type, key, object.metadata.resourceVersion]);
}
