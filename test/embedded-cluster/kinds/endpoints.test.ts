/** The columns of Endpoints and EndpointSlices, and rules that the recorded contract does not reach. */

import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { builtInTypes } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { endpoints, endpointSlices } from '../../../src/embedded-cluster/kinds/endpoints.ts';
import { BAD_IPS, GOOD_IPS, SLICE_ADDRESSES } from '../../syncer/patch/endpoint-rules.ts';

const ENDPOINTS = endpoints(builtInTypes());
const SLICES = endpointSlices(builtInTypes());

const cell = ({ columns }: typeof ENDPOINTS, name: string, object: JsonObject): JsonValue | undefined =>
  columns.find((column) => column.name === name)?.value(object, 0);

const ips = (...all: string[]): JsonObject[] => all.map((ip) => ({ ip }));

describe('the column of addresses', () => {
  test.each<[string, JsonObject[], string]>([
    ['no subset', [], '<none>'],
    [
      'only addresses that are not ready',
      [{ notReadyAddresses: ips('10.0.0.1'), ports: [{ port: 1 }] }],
      '<none>',
    ],
    ['no port', [{ addresses: ips('10.0.0.1', '::1') }], '10.0.0.1,::1'],
    ['IPv6 with a port', [{ addresses: ips('2001:db8::1'), ports: [{ port: 80 }] }], '[2001:db8::1]:80'],
    [
      'every port of every address, up to three',
      [{ addresses: ips('10.0.0.1', '10.0.0.2'), ports: [{ port: 1 }, { port: 2 }] }],
      '10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more...',
    ],
    [
      'exactly three, of two subsets',
      [{ addresses: ips('10.0.0.1', '10.0.0.2') }, { addresses: ips('10.0.0.3'), ports: [{ port: 9 }] }],
      '10.0.0.1,10.0.0.2,10.0.0.3:9',
    ],
  ])('of %s', (_, subsets, text) => {
    expect(cell(ENDPOINTS, 'Endpoints', { subsets })).toBe(text);
  });

  test('of a slice', () => {
    const slice = {
      ports: [{ port: 80 }, { name: 'any' }],
      endpoints: [{ addresses: ['10.0.0.1', '10.0.0.2'] }, { addresses: ['10.0.0.3', '10.0.0.4'] }],
    };
    expect(cell(SLICES, 'Ports', slice)).toBe('80,any');
    expect(cell(SLICES, 'Endpoints', slice)).toBe('10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...');
    expect(cell(SLICES, 'Ports', {})).toBe('<unset>');
  });
});

test('omitted protocols and port names are set, an empty protocol of Endpoints too, and no others', () => {
  const ports = (): JsonObject[] => [
    { port: 1 },
    { port: 2, protocol: 'UDP', name: 'dns' },
    { port: 3, protocol: '' },
  ];
  const [object, slice] = [{ subsets: [{ ports: ports() }] }, { ports: ports() }];
  ENDPOINTS.applyDefaults(object);
  SLICES.applyDefaults(slice);
  const [, second] = ports();
  expect(object).toEqual({
    subsets: [{ ports: [{ port: 1, protocol: 'TCP' }, second, { port: 3, protocol: 'TCP' }] }],
  });
  expect(slice).toEqual({
    ports: [{ port: 1, protocol: 'TCP', name: '' }, second, { port: 3, protocol: '', name: '' }],
  });
});

describe('an EndpointSlice', () => {
  const fieldsOf = (addressType: string, addresses: readonly string[]): string[] =>
    SLICES.validate({ addressType, endpoints: [{ addresses: [...addresses] }] }, undefined).map(
      ({ field }) => field,
    );

  test.each(SLICE_ADDRESSES)(
    'of type %s has addresses of it alone, in canonical form, none of which is reserved',
    (type, good, bad) => {
      expect(fieldsOf(type, good)).toEqual([]);
      const accepted = [...good, ...bad.map(([address]) => address)].filter(
        (address) => fieldsOf(type, [address]).length === 0,
      );
      expect(accepted).toEqual(good);
    },
  );

  test('has a type, and an address for each endpoint', () => {
    expect(fieldsOf('', [])).toEqual(['addressType', 'endpoints[0].addresses']);
    expect(fieldsOf('Other', ['x'])).toEqual(['addressType']);
  });

  test('keeps a topology of v1beta1 until its endpoints change', () => {
    const prepared = (previous: JsonObject | undefined, labels: JsonObject): JsonObject => {
      const object = { endpoints: [{ addresses: ['10.0.0.1'], deprecatedTopology: labels }], ports: [{}] };
      SLICES.prepare(object, previous, undefined);
      return object;
    };
    const old = { endpoints: [{ addresses: ['10.0.0.1'], deprecatedTopology: { a: 'b' } }], ports: [{}] };
    expect(prepared(old, { a: 'b' })).toEqual(old);
    const without = { ...old, endpoints: [{ addresses: ['10.0.0.1'] }] };
    expect([prepared(old, { a: 'c' }), prepared(undefined, { a: 'b' })]).toEqual([without, without]);
  });
});

test.each<[string, JsonObject, string[]]>([
  ['a nodeName that is no name', { ip: '10.0.0.1', nodeName: 'A_' }, ['nodeName']],
  ['an empty nodeName', { ip: '10.0.0.1', nodeName: '' }, ['nodeName']],
  ['an empty hostname', { ip: '10.0.0.1', hostname: '' }, []],
])('an address with %s', (_, address, wrong) => {
  const errors = ENDPOINTS.validate({ subsets: [{ addresses: [address] }] }, undefined);
  expect(errors.map(({ field }) => field)).toEqual(wrong.map((name) => `subsets[0].addresses[0].${name}`));
});

test('an address is an IP address that is not reserved', () => {
  const isValid = (ip: string): boolean =>
    ENDPOINTS.validate({ subsets: [{ addresses: [{ ip }] }] }, undefined).length === 0;
  expect([...GOOD_IPS, ...BAD_IPS.map(([ip]) => ip)].filter(isValid)).toEqual(GOOD_IPS);
});
