/** Where vCluster runs with other values than its release says, by what Helm leaves behind. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { formatPath } from '../../../src/config-file/finding.ts';
import { valuesInForce } from '../../../src/syncer/config/values-in-force.ts';
import { mergeConfig } from '../../../src/config-file/merge.ts';
import { vclusterDefaults } from '../../../src/shared-config/vcluster-values.ts';

const PATCHES: JsonValue = [{ path: 'metadata.annotations.a', expression: '"x"' }];
const patched: JsonObject = { sync: { toHost: { endpoints: { patches: PATCHES } } } };

function inForceOf(values: JsonObject): JsonObject {
  return mergeConfig(vclusterDefaults(), values);
}

function difference(path: string, released: JsonValue | undefined, inForce: JsonValue | undefined) {
  return { path, released, inForce };
}

function differences(released: JsonObject, inForce: JsonObject) {
  return valuesInForce(released, inForce).differences.map((one) => ({ ...one, path: formatPath(one.path) }));
}

describe('what is in force', () => {
  test('is what the release says, on the defaults of the chart', () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { minLength: 1 }));
    const name = fc.stringMatching(/^[a-z]{1,6}$/u);
    const others = fc.dictionary(name, fc.oneof(value, fc.dictionary(name, value, { minKeys: 1 })));
    const kind = fc.record(
      { enabled: fc.boolean(), patches: fc.constantFrom<JsonValue>([], PATCHES) },
      { requiredKeys: [] },
    );
    const toHost = fc.record({ endpoints: kind, endpointSlices: kind, secrets: kind }, { requiredKeys: [] });
    fc.assert(
      fc.property(others, toHost, (rest, kinds) => {
        const released: JsonObject = { ...rest, sync: { toHost: kinds } };
        expect(differences(released, inForceOf(released))).toEqual([]);
        expect(valuesInForce(released, inForceOf(released)).values).toEqual(released);
      }),
    );
  });

  const list = 'sync.toHost.endpoints.patches';
  const enabled = 'sync.toHost.endpoints.enabled';
  const off: JsonObject = { sync: { toHost: { endpoints: { enabled: false } } } };
  test.each<[string, JsonObject, JsonObject, ReturnType<typeof difference>[]]>([
    ['patches set to null with --reuse-values stay', {}, patched, [difference(list, undefined, PATCHES)]],
    [
      'patches that the release has as null stay',
      { sync: { toHost: { endpoints: { patches: null } } } },
      patched,
      [difference(list, undefined, PATCHES)],
    ],
    [
      'a failed upgrade has switched the sync off',
      {},
      off,
      [difference(enabled, true, false)].map((one) => ({ ...one, released: undefined })),
    ],
    ['a failed upgrade has not been applied', off, {}, [difference(enabled, false, true)]],
    [
      'another value than that of the release',
      { sync: { toHost: { endpoints: { patches: [] } } }, logging: { encoding: 'json' } },
      { ...patched, logging: { encoding: 'console' } },
      [difference(list, [], PATCHES), difference('logging.encoding', 'json', 'console')],
    ],
  ])('differs: %s', (_, released, changed, expected) => {
    const found = differences(released, inForceOf(changed));
    expect(found.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
      expected.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    );
  });

  test('of another version of vCluster has other defaults, which are no difference', () => {
    const { sync, ...others } = inForceOf({});
    const toHost = { ...(sync as { toHost: JsonObject }).toHost };
    delete toHost['ingresses'];
    const inForce = {
      ...others,
      sync: { ...(sync as JsonObject), toHost: { ...toHost, gateways: { enabled: false, patches: [] } } },
      newSection: { enabled: true },
      logging: { encoding: 'other' },
    };
    expect(differences({}, inForce)).toEqual([]);
  });

  test('has no sync that the release removes with null', () => {
    const released = { sync: { toHost: { ingresses: null } }, telemetry: null };
    const { sync, telemetry: _removed, ...others } = inForceOf({});
    const { ingresses: _none, ...toHost } = (sync as { toHost: JsonObject }).toHost;
    expect(differences(released, { ...others, sync: { ...(sync as JsonObject), toHost } })).toEqual([]);
  });
});
