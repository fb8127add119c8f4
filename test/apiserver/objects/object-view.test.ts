/** Objects as clients see them: ages as kubectl prints them, the form in the store, and texts that are kept. */

import { describe, expect, test } from 'vitest';
import {
  ageText,
  includeObject,
  ObjectViews,
  presented,
  storedForm,
} from '../../../src/apiserver/objects/object-view.ts';
import {
  defineResource,
  type ResourceDefinition,
} from '../../../src/apiserver/objects/resource-definition.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { accessKeyTable } from '../test-kinds.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('an age', () => {
  // The limits of `duration.HumanDuration` in k8s.io/apimachinery.
  test.each([
    [-2 * SECOND, '<invalid>'],
    [-SECOND, '0s'],
    [0, '0s'],
    [120 * SECOND - 1, '119s'],
    [120 * SECOND, '2m'],
    [10 * MINUTE - 1, '9m59s'],
    [10 * MINUTE + 59 * SECOND, '10m'],
    [3 * HOUR - 1, '179m'],
    [3 * HOUR, '3h'],
    [8 * HOUR - 1, '7h59m'],
    [8 * HOUR + 59 * MINUTE, '8h'],
    [2 * DAY - 1, '47h'],
    [2 * DAY, '2d'],
    [2 * DAY + HOUR, '2d1h'],
    [8 * DAY - 1, '7d23h'],
    [8 * DAY + 23 * HOUR, '8d'],
    [2 * 365 * DAY - 1, '729d'],
    [2 * 365 * DAY, '2y'],
    [3 * 365 * DAY + DAY, '3y1d'],
    [8 * 365 * DAY + DAY, '8y'],
  ])('of %i ms is %s', (ms, text) => {
    const created = '2020-01-01T00:00:00Z';
    expect(ageText(created, Date.parse(created) + ms)).toBe(text);
  });

  test('of an object without a time is not known', () => {
    expect(ageText('', 0)).toBe('<unknown>');
  });
});

function kind(more: Partial<ResourceDefinition> = {}): ResourceDefinition {
  const [first] = accessKeyTable().all;
  if (first === undefined) throw new Error('no kind');
  return defineResource({ ...first, ...more });
}

describe('an object', () => {
  const object: JsonObject = {
    kind: 'OwnedAccessKey',
    apiVersion: 'management.platform.sh/v1',
    metadata: { name: 'k', uid: 'u', resourceVersion: '7', labels: { a: 'b' } },
    spec: { user: 'ann' },
  };

  test('is stored without kind, version and resourceVersion, and shown with them in the order of a kube-apiserver', () => {
    const stored = storedForm(kind(), object, undefined);
    expect(stored).toEqual({ metadata: { name: 'k', uid: 'u', labels: { a: 'b' } }, spec: { user: 'ann' } });
    expect(JSON.stringify(presented(kind(), stored, '7'))).toBe(JSON.stringify(object));
  });

  test('that is not stored has no resourceVersion, whatever it was sent with', () => {
    expect(presented(kind(), object, '').metadata).toEqual({ name: 'k', uid: 'u', labels: { a: 'b' } });
  });
});

describe('the text of an entry', () => {
  const entry = {
    key: { resource: 'r', namespace: '', name: 'k' },
    value: { metadata: { name: 'k' }, spec: {} },
    revision: 7,
  };

  test.each([true, false])(
    'as an item of a list has its type only where the kind says so: %s',
    (hasTypedItems) => {
      const item = new ObjectViews().itemText(kind({ hasTypedItems }), entry);
      const typed = { kind: 'OwnedAccessKey', apiVersion: 'management.platform.sh/v1' };
      expect(JSON.parse(item)).toEqual({
        ...(hasTypedItems && typed),
        metadata: { name: 'k', resourceVersion: '7' },
        spec: {},
      });
    },
  );

  test('shows facts that are stored separately as they are now', () => {
    let activity = 'one';
    const overlay = {
      version: () => activity,
      over: (value: JsonObject): JsonObject => ({ ...value, status: { activity } }),
    };
    const same = (value: JsonObject): JsonObject => value;
    const definition = kind({ view: { validationGroup: '', toStorage: same, fromStorage: same, overlay } });
    const views = new ObjectViews();
    const shown = (): unknown => (JSON.parse(views.text(definition, entry)) as JsonObject)['status']; // an object
    expect(shown()).toEqual({ activity: 'one' });
    activity = 'two';
    expect(shown()).toEqual({ activity: 'two' });
  });
});

test.each([
  ['', 'Metadata'],
  ['includeObject=None', 'None'],
  ['includeObject=Object', 'Object'],
])('the rows of a table with %j have the part %s of the object', (query, part) => {
  expect(includeObject(new URLSearchParams(query))).toBe(part);
});

test('another part of the object is an error of the client', () => {
  expect(() => includeObject(new URLSearchParams('includeObject=none'))).toThrow(
    "Invalid value: \"none\": must be 'Metadata', 'Object', 'None', or empty",
  );
});
