/** Events: series, limits, and API servers that reject them. */

import { describe, expect, test } from 'vitest';
import { AggregatingRecorder, EventSeriesLimit, boundedNote } from '../../src/kube/event-recorder.ts';
import type { EventRecorder, PatchType } from '../../src/kube/types.ts';
import {
  ENDPOINTS,
  NAMESPACES,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../src/kube/object.ts';
import { failure, type StatusDetails, type StatusError } from '../../src/kube/status-error.ts';
import { isJsonObject, type JsonValue } from '../../src/base/json.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

function refusal(code: number, details: StatusDetails = {}): StatusError {
  return failure(code, `r${code}`, `m${code}`, details);
}

class Api {
  readonly created: KubeObject[] = [];
  readonly patched: { name: string; body: JsonValue }[] = [];
  /** Thrown by the next calls; undefined passes. */
  readonly failures: (Error | undefined)[] = [];
  /** Requests are answered only when this is called. */
  release: (() => void) | undefined;
  inFlight = 0;
  inFlightMax = 0;

  async create(_: Resource, object: KubeObject): Promise<KubeObject> {
    await this.#answer();
    this.created.push(object);
    return object;
  }

  async patch(
    _: Resource,
    { name }: NamespacedName,
    patch: { type: PatchType; body: JsonValue },
  ): Promise<KubeObject> {
    await this.#answer();
    this.patched.push({ name, body: patch.body });
    return { metadata: { name } };
  }

  hold(): void {
    const gate = Promise.withResolvers<void>();
    this.#gate = gate.promise;
    this.release = () => {
      this.#gate = undefined;
      gate.resolve();
    };
  }

  #gate: Promise<void> | undefined;

  async #answer(): Promise<void> {
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    await this.#gate;
    this.inFlight -= 1;
    const error = this.failures.shift();
    if (error !== undefined) throw error;
  }
}

interface Desk {
  readonly api: Api;
  readonly clock: FakeClock;
  readonly recorder: EventRecorder & { readonly seriesCount: number };
  readonly results: string[];
  readonly warnings: string[];
}

function desk(clock = new FakeClock(), limit = new EventSeriesLimit()): Desk {
  const api = new Api();
  const results: string[] = [];
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (_, message) => void warnings.push(message) };
  let draws = 0;
  const recorder = new AggregatingRecorder({
    client: api,
    reportingController: 'endpoint-syncer/controller',
    reportingInstance: 'pod-1',
    clock,
    random: () => (draws += 1) / 1000,
    logger,
    metrics: { event: (result) => results.push(result) },
    limit,
  });
  return { api, clock, recorder, results, warnings };
}

function object(name: string, namespace = 'ns'): KubeObject {
  return { metadata: { name, uid: `uid-${name}`, ...(namespace === '' ? {} : { namespace }) } };
}

function warn({ recorder }: Desk, name: string, note = 'it failed', reason = 'SyncError'): void {
  recorder.event(object(name), ENDPOINTS, { type: 'Warning', reason, note });
}

function counts(api: Api): JsonValue[] {
  return api.patched.map(({ body }) =>
    isJsonObject(body) && isJsonObject(body['series']) ? (body['series']['count'] ?? null) : null,
  );
}

describe('an Event', () => {
  test('has the fields of events.k8s.io/v1', async () => {
    const at = desk();
    warn(at, 'a');
    await settle();
    const [event] = at.api.created;
    expect(event).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: event?.metadata.name, namespace: 'ns' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'endpoint-syncer/controller',
      reportingInstance: 'pod-1',
      action: 'Sync',
      reason: 'SyncError',
      type: 'Warning',
      regarding: { apiVersion: 'v1', kind: 'Endpoints', namespace: 'ns', name: 'a', uid: 'uid-a' },
      note: 'it failed',
    });
    expect(event?.metadata.name).toMatch(/^a\.[0-9a-f]+$/);
  });

  test('about a cluster-scoped object is in the namespace default', async () => {
    const at = desk();
    at.recorder.event(object('Odd:Name', ''), NAMESPACES, {
      type: 'Warning',
      reason: 'R',
      note: 'n',
      action: 'Create',
    });
    await settle();
    expect(at.api.created[0]).toMatchObject({
      metadata: { namespace: 'default' },
      action: 'Create',
      regarding: { kind: 'Namespace' },
    });
    expect(at.api.created[0]?.metadata.name).toMatch(/^odd-name\.[0-9a-f]+$/);
  });

  test.each([
    ['short', 'abc', 3],
    ['as long as allowed', 'x'.repeat(1024), 1024],
    ['too long', 'x'.repeat(1025), 1024],
    ['of two bytes each', 'ä'.repeat(600), 1023],
    ['of four bytes each', '😀'.repeat(300), 1023],
  ])('note %s', (_, note, bytes) => {
    const bounded = boundedNote(note);
    expect(Buffer.byteLength(bounded)).toBe(bytes);
    expect(bounded).not.toContain('\ufffd');
    expect(note.startsWith(bounded.replace(/…$/, ''))).toBe(true);
  });
});

describe('a series', () => {
  test('counts repetitions, and sends the count every ten seconds at most', async () => {
    const at = desk();
    for (let i = 0; i < 5; i++) warn(at, 'a');
    await settle();
    expect(at.api.created).toHaveLength(1);
    for (let i = 0; i < 3; i++) warn(at, 'a');
    await at.clock.advanceAsync(9_999);
    expect(at.api.patched).toEqual([]);
    await at.clock.advanceAsync(1);
    expect(counts(at.api)).toEqual([8]);
    await at.clock.advanceAsync(60_000);
    expect(at.api.patched, 'a quiet period sends nothing').toHaveLength(1);
  });

  test('counts repetitions while it is sent', async () => {
    const at = desk();
    at.api.hold();
    warn(at, 'a');
    warn(at, 'a');
    await settle();
    warn(at, 'a');
    expect(at.api.inFlight).toBe(1);
    at.api.release?.();
    await at.clock.advanceAsync(10_000);
    expect(at.api.created).toHaveLength(1);
    expect(counts(at.api)).toEqual([3]);
  });

  test('is one per object and reason', async () => {
    const at = desk();
    warn(at, 'a');
    warn(at, 'b');
    warn(at, 'a', 'x', 'PatchFailed');
    await settle();
    expect(
      at.api.created.map(({ metadata, ...event }) => [metadata.name.split('.')[0], event['reason']]),
    ).toEqual([
      ['a', 'SyncError'],
      ['b', 'SyncError'],
      ['a', 'PatchFailed'],
    ]);
  });

  test('with a new note is a new Event, ten times at most', async () => {
    const at = desk();
    for (let i = 0; i < 30; i++) {
      warn(at, 'a', `note ${i}`);
      await settle();
    }
    await at.clock.advanceAsync(10_000);
    expect(at.api.created.map((event) => event['note'])).toEqual(
      Array.from({ length: 10 }, (_, i) => `note ${i}`),
    );
    expect(counts(at.api), 'the others are counted').toEqual([21]);
  });

  test('whose Event has expired continues in a new one', async () => {
    const at = desk();
    warn(at, 'a');
    await settle();
    at.api.failures.push(refusal(404, { kind: 'events' }));
    warn(at, 'a');
    await at.clock.advanceAsync(10_000);
    expect(at.api.created).toHaveLength(2);
    expect(at.api.created[1]).toMatchObject({ series: { count: 2 } });
    expect(at.results).toEqual(['sent', 'sent']);
  });

  test('ends after ten minutes without a repetition', async () => {
    const at = desk();
    warn(at, 'a');
    await at.clock.advanceAsync(600_000);
    warn(at, 'a');
    await settle();
    expect(at.api.created).toHaveLength(2);
    expect(at.api.created[1]).not.toHaveProperty('series');
  });
});

describe('limits', () => {
  test('Normal Events are limited by a token bucket of 25 and 5 a second', async () => {
    const at = desk();
    const sync = (name: string): void =>
      at.recorder.event(object(name), ENDPOINTS, { type: 'Normal', reason: 'Synced', note: 'n' });
    for (let i = 0; i < 40; i++) sync(`a${i}`);
    await settle();
    at.clock.advance(2000);
    for (let i = 0; i < 40; i++) sync(`b${i}`);
    for (let i = 0; i < 20; i++) await settle();
    expect(at.api.created).toHaveLength(35);
    expect(at.results.filter((result) => result === 'dropped')).toHaveLength(45);
  });

  test('no Warning is lost, and four are sent concurrently', async () => {
    const at = desk();
    at.api.hold();
    for (let i = 0; i < 500; i++) warn(at, `a${i}`);
    await settle();
    expect(at.api.inFlight).toBe(4);
    at.api.release?.();
    await at.recorder.flush();
    expect(new Set(at.api.created.map(({ metadata }) => metadata.name.split('.')[0])).size).toBe(500);
    expect(at.api.inFlightMax).toBe(4);
  });
});

describe('what is kept of a series', () => {
  const seriesOf = ({ recorder }: Desk): number => recorder.seriesCount;

  test('is forgotten ten minutes after its last Event, with changing names', async () => {
    const at = desk();
    for (let minute = 0; minute < 60; minute++) {
      for (let i = 0; i < 10; i++) warn(at, `m${minute}-${i}`);
      await at.clock.advanceAsync(60_000);
    }
    expect(at.api.created).toHaveLength(600);
    expect(seriesOf(at)).toBeLessThanOrEqual(110);
    await at.clock.advanceAsync(11 * 60_000);
    expect(seriesOf(at)).toBe(0);
    expect(at.clock.nextDelayMs, 'no timer is left').toBeUndefined();
  });

  test('stays until its Event is sent', async () => {
    const at = desk();
    at.api.failures.push(...Array.from({ length: 5 }, () => refusal(403)));
    warn(at, 'a');
    await at.clock.advanceAsync(21 * 60_000);
    expect(seriesOf(at)).toBe(1);
    await at.clock.advanceAsync(15 * 60_000);
    expect([at.api.created.length, seriesOf(at)]).toEqual([1, 0]);
  });

  test('has one limit for all recorders of a process: the one with most of them forgets its oldest', async () => {
    const [clock, limit] = [new FakeClock(), new EventSeriesLimit()];
    const [small, large] = [desk(clock, limit), desk(clock, limit)];
    for (let i = 0; i < 10; i++) warn(small, `s${i}`);
    for (let i = 0; i < 20_000; i++) warn(large, `l${i}`);
    expect([seriesOf(small), seriesOf(large)]).toEqual([10, 19_990]);
    for (let i = 10; i < 20; i++) warn(small, `s${i}`);
    expect([seriesOf(small), seriesOf(large)]).toEqual([20, 19_980]);
    // One that has ended counts no more, whether its server was reachable or not.
    large.api.failures.push(...Array.from({ length: 9 }, () => new Error('away')));
    await large.recorder.flush();
    for (let i = 0; i < 100; i++) warn(small, `t${i}`);
    expect(seriesOf(small)).toBe(120);
  });
});

describe('failures', () => {
  test('an unavailable server is retried, with one line in the log', async () => {
    const at = desk();
    at.api.failures.push(new Error('reset'), refusal(503), refusal(429));
    warn(at, 'a');
    await at.clock.advanceAsync(60_000);
    expect(at.api.created).toHaveLength(1);
    expect(at.results).toEqual(['error', 'error', 'error', 'sent']);
    expect(at.warnings).toEqual(['events cannot be sent and are retried']);
  });

  test.each([403, 404])('after a %i they are held back with one warning, and retried later', async (code) => {
    const at = desk();
    at.api.failures.push(refusal(code), refusal(code));
    warn(at, 'a');
    await settle();
    for (let i = 0; i < 100; i++) warn(at, `b${i}`);
    await at.clock.advanceAsync(299_000);
    expect(at.results).toEqual(['error']);
    await at.clock.advanceAsync(302_000);
    expect(at.warnings).toEqual(['events are rejected by the API server and are held back']);
    expect(at.api.created).toHaveLength(101);
  });

  test.each([
    ['invalid', refusal(422)],
    ['for a namespace that is gone', refusal(404, { kind: 'namespaces' })],
    ['for a namespace that is being deleted', refusal(403, { causes: [{ reason: 'NamespaceTerminating' }] })],
  ])('an Event that is %s is dropped alone', async (_, error) => {
    const at = desk();
    at.api.failures.push(error);
    warn(at, 'a');
    warn(at, 'b');
    await settle();
    expect(at.api.created.map(({ metadata }) => metadata.name.split('.')[0])).toEqual(['b']);
    expect(at.warnings).toEqual([]);
  });

  test('flushing ends although the server is unavailable', async () => {
    const at = desk();
    at.api.failures.push(...Array.from({ length: 50 }, () => new Error('away')));
    for (let i = 0; i < 20; i++) warn(at, `a${i}`);
    await at.recorder.flush();
    expect(at.results.length).toBeLessThan(20);
    expect(at.clock.nextDelayMs, 'no timer is left').toBeUndefined();
  });

  test('flushing sends the pending counts', async () => {
    const at = desk();
    warn(at, 'a');
    await settle();
    warn(at, 'a');
    await at.recorder.flush();
    expect(counts(at.api)).toEqual([2]);
  });
});
