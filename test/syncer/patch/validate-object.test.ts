/** Validation of patched Endpoints, which accepts invalid values that existed before. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { printPath } from '../../../src/syncer/patch/path-syntax.ts';
import type { ValidateResult } from '../../../src/syncer/patch/types.ts';
import { validateEndpointSlice } from '../../../src/syncer/kinds/endpoint-slices.ts';
import { validateEndpoints } from '../../../src/syncer/kinds/endpoints.ts';
import { validationOf } from '../../../src/syncer/kinds/synced-kinds.ts';
import { byNewestVersion, validateService } from '../../../src/syncer/patch/validate-object.ts';
import {
  BAD_IPS,
  BAD_RANGES,
  changed,
  GOOD_IPS,
  REFUSED,
  SLICE_ADDRESSES,
  SLICE_REFUSED,
  SLICE_TAKEN,
  TAKEN,
  VALID,
  VALID_SERVICE,
  VALID_SLICE,
} from './endpoint-rules.ts';

function problem(after: JsonObject, before: JsonObject = VALID): string | undefined {
  const found = byNewestVersion(validateEndpoints)(before, after);
  return found && `${printPath(found.path)}: ${found.message}`;
}

describe('the result of a patch is rejected', () => {
  test.each(REFUSED)('%j = %j', (path, value, message) => {
    expect(problem(changed(path, value))).toMatch(message);
  });

  test.each(TAKEN)('but %j = %j is fine', (path, value) => {
    expect(problem(changed(path, value))).toBeUndefined();
  });

  test.each(GOOD_IPS)('but the address %s is fine', (ip) => {
    expect(problem(changed(['subsets', 0, 'addresses', 0, 'ip'], ip))).toBeUndefined();
  });

  test.each(BAD_IPS)('the address %s', (ip, message) => {
    expect(problem(changed(['subsets', 0, 'addresses', 0, 'ip'], ip))).toMatch(message);
  });

  test('a new element is validated completely', () => {
    const address: JsonObject = { hostname: 'x' };
    expect(problem(changed(['subsets', 0, 'addresses'], [address]))).toMatch(
      /addresses.0.ip: must be a valid IP address/,
    );
    expect(problem(changed(['subsets', 2], { addresses: [{ ip: 'x' }] }))).toMatch(
      /subsets.2.addresses.0.ip: must be/,
    );
    expect(problem(changed(['subsets', 1, 'ports', 1], { port: 81 }))).toMatch(/ports.0.name: is required/);
  });
});

describe('an invalid value that the object had before is accepted', () => {
  test.each(REFUSED.filter(([path]) => path.length > 2))('%j = %j', (path, value) => {
    const before = changed(path, value);
    expect(problem(before, before)).toBeUndefined();
    const beside = changed(['subsets', 0, 'notReadyAddresses', 0, 'hostname'], 'new', before);
    expect(problem(beside, before)).toBeUndefined();
  });

  test.each(REFUSED.filter(([path]) => path.length > 2 && path[1] !== 1))(
    'and %j = %j beside it is rejected',
    (path, value, message) => {
      const before = changed(['subsets', 1, 'addresses', 0, 'ip'], 'x');
      expect(problem(changed(path, value, before), before)).toMatch(message);
    },
  );

  test('one more of the same value is new', () => {
    const before = changed(['subsets', 0, 'addresses', 0, 'ip'], 'x');
    const after = changed(['subsets', 0, 'addresses', 1, 'ip'], 'x', before);
    expect(problem(after, before)).toMatch(/addresses.1.ip: must be a valid IP address/);
  });

  test('moved elements are not new', () => {
    const bad = { ip: 'not-an-ip' };
    const before = changed(['subsets', 0, 'addresses'], [{ ip: '10.0.0.1' }, bad]);
    const [subset, ...others] = before['subsets'] as { addresses: JsonValue[] }[];
    const withAddresses = (addresses: JsonValue[]): JsonObject => ({
      ...before,
      subsets: [{ ...subset, addresses }, ...others] as JsonValue,
    });
    const kept = subset?.addresses.slice(1) ?? [];
    expect(problem(withAddresses(kept), before)).toBeUndefined();
    expect(problem(withAddresses([bad]), before)).toBeUndefined();
    const worse = problem(withAddresses([{ ip: 'x' }]), before);
    expect(worse).toMatch(/addresses.0.ip/);
  });

  test('an invalid name, unchanged', () => {
    const object: JsonObject = { metadata: { name: [] } };
    expect(problem(cloneJson(object), object)).toBeUndefined();
  });

  test('any object against itself', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (metadata, subsets) => {
        const object = { metadata, subsets } as JsonObject;
        expect(problem(object, object)).toBeUndefined();
        expect(problem(cloneJson(object), object)).toBeUndefined();
      }),
    );
  });

  test('validation never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (metadata, before, after) => {
        const found = validateEndpoints(
          { metadata, subsets: before } as JsonObject,
          { metadata, subsets: after } as JsonObject,
        );
        expect(found === undefined || found.message !== '').toBe(true);
      }),
    );
  });
});

describe('a patched EndpointSlice', () => {
  const problemOf = (after: JsonObject, before: JsonObject = VALID_SLICE): string | undefined => {
    const found = byNewestVersion(validateEndpointSlice)(before, after);
    return found && `${printPath(found.path)}: ${found.message}`;
  };
  const slice = (path: (typeof SLICE_REFUSED)[number][0], value: JsonValue | undefined): JsonObject =>
    changed(path, value, VALID_SLICE);

  test.each(SLICE_REFUSED)('is rejected with %j = %j', (path, value, message) => {
    expect(problemOf(slice(path, value))).toMatch(message);
    const validate = validationOf(VALID_SLICE, { services: { mode: 'vcluster', allow: [] } });
    expect(validate(VALID_SLICE, slice(path, value))).toBeDefined();
  });

  test.each(SLICE_TAKEN)('may have %j = %j', (path, value) => {
    expect(problemOf(slice(path, value))).toBeUndefined();
  });

  test.each(SLICE_REFUSED)('may keep %j = %j', (path, value) => {
    const before = slice(path, value);
    expect(problemOf(changed(['endpoints', 1, 'zone'], 'new', before), before)).toBeUndefined();
  });

  test.each(SLICE_ADDRESSES)('has addresses of its type, %s', (addressType, good, bad) => {
    const accepted = [...good, ...bad.map(([address]) => address)].filter((address) => {
      const endpoints = [{ addresses: [address] }];
      return problemOf({ ...VALID_SLICE, addressType, endpoints }) === undefined;
    });
    expect(accepted).toEqual(good);
  });
});

describe('what only newer versions of Kubernetes reject is left to the host', () => {
  const ranges = (range: JsonValue): JsonObject =>
    changed(['spec', 'loadBalancerSourceRanges'], [range], VALID_SERVICE);
  const ip = (address: string): JsonObject => changed(['subsets', 1, 'addresses', 0, 'ip'], address);
  const slice = (addressType: string, address: string): JsonObject => ({
    ...changed(['endpoints'], [{ addresses: [address] }], VALID_SLICE),
    addressType,
  });
  const service: ValidateResult = (before, after, options) => validateService(before, after, [], options);
  interface Case {
    readonly what: string;
    readonly validate: ValidateResult;
    readonly before: JsonObject;
    readonly after: JsonObject;
    readonly since: string | undefined;
  }
  const cases: readonly Case[] = [
    ...REFUSED.map(([path, value, , since]) => {
      const after = changed(path, value);
      return {
        what: JSON.stringify([path, value]),
        validate: validateEndpoints,
        before: VALID,
        after,
        since,
      };
    }),
    ...BAD_IPS.map(([bad, , since]) => ({
      what: bad,
      validate: validateEndpoints,
      before: VALID,
      after: ip(bad),
      since,
    })),
    ...SLICE_ADDRESSES.flatMap(([type, [good = ''], bad]) =>
      bad.map(([address, since]) => {
        const [before, after] = [slice(type, good), slice(type, address)];
        return { what: `${type} ${address}`, validate: validateEndpointSlice, before, after, since };
      }),
    ),
    ...BAD_RANGES.map(([range, , since]) => {
      const [before, after] = [ranges('10.0.0.0/8'), ranges(range)];
      return { what: range, validate: service, before, after, since };
    }),
  ];

  test.each(cases)('$what', ({ validate, before, after, since }) => {
    expect(validate(before, after) === undefined).toBe(since !== undefined);
    expect(byNewestVersion(validate)(before, after)).toBeDefined();
  });
});
