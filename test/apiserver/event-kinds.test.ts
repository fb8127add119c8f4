/** Events in both views of one storage: nothing is lost between them, and both show and select the same. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { coreEvents, EVENT_TYPES, groupEvents } from '../../src/apiserver/event-kinds.ts';
import type { ResourceDefinition } from '../../src/apiserver/objects/resource-definition.ts';
import { META_TYPES, TypeTable } from '../../src/apiserver/schema/object-schema.ts';
import type { JsonObject } from '../../src/base/json.ts';

const TYPES = new TypeTable([META_TYPES, EVENT_TYPES]);
const CORE = coreEvents(TYPES);
const GROUP = groupEvents(TYPES);
const NOW = Date.parse('2026-01-01T00:10:00Z');

function stored(event: JsonObject): JsonObject {
  return GROUP.view?.toStorage(event, undefined) ?? {};
}

const word = fc.constantFrom('a', 'b c');
const time = fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z');
const event = fc.record(
  {
    reportingController: word,
    reportingInstance: word,
    action: word,
    reason: word,
    note: word,
    type: fc.constantFrom('Normal', 'Warning'),
    regarding: fc.record({ kind: word, name: word, fieldPath: word }),
    series: fc.record({ count: fc.nat(), lastObservedTime: time }),
    deprecatedSource: fc.record({ component: word, host: word }),
    deprecatedFirstTimestamp: time,
    deprecatedLastTimestamp: time,
    deprecatedCount: fc.nat(),
    eventTime: time,
    metadata: fc.record({ name: word }),
    related: fc.record({ name: word }),
  },
  { noNullPrototype: true, requiredKeys: ['metadata'] },
);

/** The members that are set; a kube-apiserver writes some of them even when they are empty. */
function setMembers(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => value !== null && JSON.stringify(value) !== '{}'),
  );
}

describe('an Event of events.k8s.io', () => {
  test('survives the storage, in which no name of its own group is left', () => {
    fc.assert(
      fc.property(event, (given) => {
        const core = stored(given);
        expect(Object.keys(core).filter((key) => !TYPES.get('Event').fields.has(key))).toEqual([]);
        expect(setMembers(GROUP.view?.fromStorage(core) ?? {})).toEqual(given);
      }),
    );
  });

  test('has the columns and the values of selectors of the same Event of the core group', () => {
    fc.assert(
      fc.property(event, (given) => {
        const core = stored(given);
        const cells = ({ columns }: ResourceDefinition, of: JsonObject): unknown[] =>
          columns.map((column) => [column.name, column.value(of, NOW)]);
        expect(cells(GROUP, given)).toEqual(cells(CORE, core));
        const coreNames = { regarding: 'involvedObject', reportingController: 'reportingComponent' };
        for (const [name, valueOf] of Object.entries(GROUP.selectableFields)) {
          const coreName = Object.entries(coreNames).reduce(
            (text, [own, core]) => text.replace(own, core),
            name,
          );
          expect([name, CORE.selectableFields[coreName]?.(core)]).toEqual([name, valueOf(given)]);
        }
      }),
    );
  });
});

const at = (minute: number): string => `2026-01-01T00:0${minute}:00Z`;

test.each<[string, JsonObject, string | number]>([
  ['Last Seen', { eventTime: at(1) }, '9m'],
  ['Last Seen', { eventTime: at(1), lastTimestamp: at(5) }, '5m'],
  ['Last Seen', { lastTimestamp: at(5), series: { count: 2, lastObservedTime: at(8) } }, '2m'],
  ['First Seen', { eventTime: at(1), firstTimestamp: at(4) }, '6m'],
  ['Last Seen', {}, '<unknown>'],
  ['Count', {}, 1],
  ['Count', { count: 3 }, 3],
  ['Count', { count: { toString: 1, valueOf: 1 } }, 1],
  ['Count', { count: 3, series: { count: 7 } }, 7],
  [
    'Source',
    { source: { component: 'c', host: 'h' }, reportingComponent: 'x', reportingInstance: 'y' },
    'c, h',
  ],
  ['Source', { reportingComponent: 'x' }, 'x'],
  ['Object', { involvedObject: { kind: 'Endpoints', name: 'web' } }, 'endpoints/web'],
])('%s of %j is %s', (name, object, text) => {
  expect(CORE.columns.find((column) => column.name === name)?.value(object, NOW)).toBe(text);
});

describe('errors', () => {
  const valid: JsonObject = {
    metadata: { namespace: 'n' },
    regarding: { namespace: 'n' },
    eventTime: at(1),
    reportingController: 'c',
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    note: 'x'.repeat(1024),
    type: 'Normal',
  };
  const fieldsOf = (next: JsonObject, previous?: JsonObject): string[] =>
    GROUP.validate(next, previous).map(({ field }) => field);

  test.each<[string, JsonObject, string[]]>([
    ['nothing, with a note of 1024 bytes', {}, []],
    ['a note above 1024 bytes', { note: 'ä'.repeat(513) }, ['message']],
    ['a text above 128 bytes', { action: 'x'.repeat(129) }, ['action']],
    ['no controller', { reportingController: '' }, ['reportingController']],
    ['another namespace', { regarding: { namespace: 'm' } }, ['involvedObject.namespace']],
    [
      'an object of the cluster, outside of the namespace default',
      { regarding: {} },
      ['involvedObject.namespace'],
    ],
    [
      'an object of the cluster, in the namespace default',
      { regarding: {}, metadata: { namespace: 'default' } },
      [],
    ],
    ['another type', { type: 'Error' }, ['type']],
  ])('of a new Event: %s', (_, more, fields) => {
    expect(fieldsOf({ ...valid, ...more })).toEqual(fields);
  });

  test('of an update: what the Event says cannot change, how often it happened can', () => {
    expect(fieldsOf({ ...valid, series: { count: 2 } }, valid)).toEqual([]);
    expect(fieldsOf({ ...valid, note: 'other', reportingController: 'd' }, valid)).toEqual([
      'message',
      'reportingComponent',
    ]);
  });
});
