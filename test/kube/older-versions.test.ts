/** The tables of what kube-apiservers take, which `test/e2e/endpoint-rules.test.ts` runs on real ones of each supported version. */

import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { asObject } from '../../src/kube/object.ts';
import { differencesOfOlder } from '../../src/kube/older-versions.ts';
import {
  changed,
  SERVICE_NAMES,
  SERVICE_TAKEN,
  SLICE_TAKEN,
  VALID,
  VALID_SERVICE,
  VALID_SLICE,
} from '../syncer/patch/endpoint-rules.ts';

const CASES: readonly (readonly [JsonObject, since: string | undefined])[] = [
  [VALID, undefined],
  [VALID_SERVICE, undefined],
  [VALID_SLICE, undefined],
  ...SERVICE_TAKEN.map(([path, value, since]) => [changed(path, value, VALID_SERVICE), since] as const),
  ...SERVICE_NAMES.map(
    ([name, since]) => [changed(['metadata', 'name'], name, VALID_SERVICE), since] as const,
  ),
  ...SLICE_TAKEN.map(([path, value]) => [changed(path, value, VALID_SLICE), undefined] as const),
  [changed(['endpoints', 0, 'hints'], { forNodes: [{ name: 'node' }] }, VALID_SLICE), '1.34'],
];

test.each(CASES)('of %j, the versions before %s refuse or leave out something', (object, since) => {
  const versions = differencesOfOlder(asObject(object)).map(
    ({ message }) => /before (\S+)/u.exec(message)?.[1],
  );
  expect(versions).toEqual(since === undefined ? [] : [since]);
});
