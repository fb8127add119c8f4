/** Which EndpointSlices of the host are reported as contested, and when the check runs. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { ENDPOINTS, objectKey, type KubeObject, type StringMap } from '../../src/kube/object.ts';
import { failure } from '../../src/kube/status-error.ts';
import type { ClusterClient, RecordedEvent } from '../../src/kube/types.ts';
import { endpointsContent } from '../../src/syncer/kinds/endpoints.ts';
import { checkSlices } from '../../src/syncer/slice-check.ts';
import { forgeHostObject } from '../../src/syncer/translate/forge.ts';
import { costlyRuns } from '../support/costly-runs.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { validConfig } from '../cli/config/setup.ts';
import { endpoints, translators } from './translate/setup.ts';

/** The whole second in which the check starts. */
const START_MS = new FakeClock().now();
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const virtual = endpoints({});
const { names, labels } = translators();
const target = names.toHost({ name: virtual.metadata.name, namespace: virtual.metadata.namespace ?? '' });
if (target === undefined) throw new Error('every namespace is mapped');
const forged = forgeHostObject(virtual, {
  kind: ENDPOINTS,
  content: endpointsContent,
  target,
  names,
  labels,
});

/** The copy, last written by this program so many seconds after `START_MS`. */
function copyOf(writtenAt: number | undefined): KubeObject {
  const time = new Date(START_MS + (writtenAt ?? 0) * 1000).toISOString();
  const managedFields =
    writtenAt === undefined ? [] : [{ manager: 'endpoint-syncer', operation: 'Update', time }];
  return { ...forged, metadata: { ...forged.metadata, managedFields } };
}

/** The first entry of managedFields is that of the mirroring controller. Times are seconds after `START_MS`. */
interface Writes {
  readonly controllerAt: number;
  readonly otherAt: number;
  readonly owns?: 'endpoints' | 'metadata';
  readonly other?: string;
  readonly controller?: string;
}

const FOUGHT: Writes = { controllerAt: 5, otherAt: 5, owns: 'metadata' };

function slice(
  manager: string,
  name = 'web-abcde-x-default-x-suffix',
  {
    controllerAt,
    otherAt,
    owns = 'endpoints',
    other = 'vcluster',
    controller = 'kube-controller-manager',
  }: Writes = FOUGHT,
): KubeObject {
  const entry = (writer: string, seconds: number, field: string) => ({
    manager: writer,
    operation: 'Update',
    time: new Date(START_MS + seconds * 1000).toISOString(),
    fieldsV1: { [`f:${field}`]: {} },
  });
  const managedFields = [entry(controller, controllerAt, 'metadata'), entry(other, otherAt, owns)];
  const sliceLabels: StringMap = {
    'kubernetes.io/service-name': target?.name ?? '',
    'endpointslice.kubernetes.io/managed-by': manager,
  };
  return { metadata: { name, namespace: target?.namespace ?? '', labels: sliceLabels, managedFields } };
}

/** Events of all checks within `ms`; `lists` counts the lists. */
async function reported(
  slices: readonly KubeObject[] | ((nowMs: number) => KubeObject) | 'forbidden',
  ms: number,
  copy = copyOf(-800),
) {
  const clock = new FakeClock(START_MS + 500);
  const events: RecordedEvent[] = [];
  const warnings: unknown[] = [];
  let lists = 0;
  const client = {
    list: async () => {
      lists += 1;
      if (slices === 'forbidden') throw failure(403, 'Forbidden', 'no');
      const items = typeof slices === 'function' ? [slices(clock.now())] : [...slices];
      return { resourceVersion: '1', continueToken: '', items };
    },
    get: async (_: unknown, key: { namespace: string; name: string }) =>
      objectKey(copy) === `${key.namespace}/${key.name}` ? copy : virtual,
  } as unknown as ClusterClient; // what the check needs
  const stopping = new AbortController();
  const running = checkSlices(
    {
      config: validConfig('endpointSyncer: {name: suffix}'),
      clients: { virtual: client, host: client },
      names,
      recorder: {
        event: (_object, _resource, event) => void events.push(event),
        flush: async () => undefined,
      },
      clock,
      logger: { ...silentLogger, warn: (fields) => void warnings.push(fields) } as Logger,
    },
    stopping.signal,
  );
  await clock.advanceAsync(ms);
  stopping.abort();
  await running;
  return { events, lists, warnings };
}

describe('slices of our copies', () => {
  test('that the mirroring controller did not create are reported with the remedy, in the log too', async () => {
    const { events, warnings } = await reported([slice(MIRRORING)], 11_000);
    expect(events).toMatchObject([{ type: 'Warning', reason: 'Contested' }]);
    expect(warnings).toMatchObject([{ key: 'shop/web', note: events[0]?.note }]);
    expect(events[0]?.note).toContain('sync.toHost.endpointSlices.enabled');
  });

  const NAME = 'web-abcde-x-default-x-suffix';

  test.each<[string, Writes, number]>([
    ['that another client wrote last', { controllerAt: -700, otherAt: -600 }, 1],
    ['that another client has written since the start', { controllerAt: 8, otherAt: 3, owns: 'metadata' }, 1],
    ['that vCluster wrote before the controller went on with them', { controllerAt: 2, otherAt: -5 }, 0],
    ['that vCluster wrote last in the second of the start', { controllerAt: 2, otherAt: 0 }, 0],
    [
      'whose endpoints the controller has taken over',
      { controllerAt: -90, otherAt: -60, owns: 'metadata' },
      0,
    ],
    ['that the controller of k3s alone writes', { controllerAt: 8, otherAt: -5, controller: 'k3s' }, 0],
    [
      'that the controller of MicroK8s alone writes',
      { controllerAt: 8, otherAt: -5, controller: 'kubelite' },
      0,
    ],
    ['that this program wrote', { controllerAt: -90, otherAt: 5, other: 'endpoint-syncer' }, 0],
  ])('%s: %i Events', async (_, writes, events) => {
    expect((await reported([slice(MIRRORING, NAME, writes)], 11_000)).events).toHaveLength(events);
  });

  test.each([
    ['is not taken over yet', undefined],
    ['was just taken over', 9],
  ])('whose copy %s are not', async (_, writtenAt) => {
    const left = slice(MIRRORING, NAME, { controllerAt: -700, otherAt: -600 });
    expect((await reported([left], 11_000, copyOf(writtenAt))).events).toEqual([]);
  });

  test('that another client wrote once are reported while that is less than a minute ago', async () => {
    const written = slice(MIRRORING, NAME, { controllerAt: 8, otherAt: 3 });
    expect((await reported([written], 331_000)).events).toHaveLength(2);
  });

  test.each([
    [
      'that it created, whose generateName it drops with its first update',
      slice(MIRRORING, `${target.name}-abcde`),
    ],
    ['of the endpoint slice controller', slice('endpointslice-controller.k8s.io')],
    ['of this program', slice('endpoint-syncer')],
  ])('%s are not', async (_, one) => {
    expect((await reported([one], 11_000)).events).toEqual([]);
  });

  test('that are fought over are reported by the first check, whatever the rhythm of the fight and its phase', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 1500 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0.3, max: 0.7, noNaN: true }),
        async (periodMs, phase, share) => {
          // The last writer owns every field.
          const fought = (nowMs: number): KubeObject => {
            const isOurs = (nowMs / periodMs + phase) % 1 < share;
            const at = (nowMs - START_MS) / 1000;
            return slice(MIRRORING, NAME, { controllerAt: at, otherAt: isOurs ? at : -700 });
          };
          const { events } = await reported(fought, 13_000);
          expect(events).toHaveLength(1);
        },
      ),
      { numRuns: costlyRuns(200) },
    );
  });

  test('that the controller alone keeps writing are not, after a few more lists', async () => {
    const at = (nowMs: number) => (nowMs - START_MS) / 1000;
    const written = (nowMs: number) => slice(MIRRORING, NAME, { controllerAt: at(nowMs), otherAt: -700 });
    const { events, lists } = await reported(written, 25_000);
    expect([events, lists]).toEqual([[], 19]);
  });

  test('are searched after 10 s, 30 s and every 5 minutes, even if the right is missing', async () => {
    for (const [ms, lists] of [
      [9000, 0],
      [11_000, 1],
      [31_000, 2],
      [329_000, 2],
      [331_000, 3],
    ] as const)
      expect((await reported('forbidden', ms)).lists).toBe(lists);
  });
});
