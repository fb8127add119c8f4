/** The output formats of lists: table, wide, name, JSON, YAML, JSONPath template. */

import { InvalidArgumentError } from 'commander';
import { describe, expect, test } from 'vitest';
import { formatJson, formatListing, outputOption, resourceName } from '../../../src/cli/output/listing.ts';

const shared = { namespace: 'team-a' };
const LISTING = {
  heading: ['NAME', 'STATE'],
  wideHeading: ['WHY'],
  rows: [
    { cells: ['shop/web', 'synced'], wideCells: ['has a copy'], name: 'shop/web', json: { a: 1, shared } },
    { cells: ['shop/db', 'failed'], wideCells: ['\u001b[2J'], name: 'shop/db', json: { a: 'x', shared } },
  ],
};

describe('a listing', () => {
  test.each([
    ['table', 'NAME       STATE\nshop/web   synced\nshop/db    failed\n'],
    ['wide', 'NAME       STATE    WHY\nshop/web   synced   has a copy\nshop/db    failed   \\u001b[2J\n'],
    ['name', 'shop/web\nshop/db\n'],
    [
      'json',
      `${JSON.stringify(
        LISTING.rows.map(({ json }) => json),
        null,
        2,
      )}\n`,
    ],
    ['yaml', '- a: 1\n  shared:\n    namespace: team-a\n- a: x\n  shared:\n    namespace: team-a\n'],
    ['jsonpath={[*].a}', '1 x'],
    ['jsonpath={[0].shared}{"\\n"}', '{"namespace":"team-a"}\n'],
    ['jsonpath=a is {[1].a}, {[1].b}.', 'a is x, .'],
    ['jsonpath={range [?(@.shared)]}{.a};{end}', '1;x;'],
  ])('-o %s', (format, text) => {
    expect(formatListing(LISTING, format)).toBe(text);
  });

  test.each([
    ['Endpoints', '', 'endpoints/web'],
    ['EndpointSlice', 'discovery.k8s.io', 'endpointslice.discovery.k8s.io/web'],
    ['Gadget', 'example.com', 'gadget.example.com/web'],
  ])('%s of group "%s" is named as kubectl names it', (kind, group, name) => {
    expect(resourceName(kind, group, 'web')).toBe(name);
  });

  test('without rows has no heading', () => {
    const empty = { ...LISTING, rows: [] };
    const formats = ['table', 'wide', 'name', 'json', 'yaml', 'jsonpath={[*].a}'];
    expect(formats.map((format) => formatListing(empty, format))).toEqual(['', '', '', '[]\n', '[]\n', '']);
  });

  test('one object in the same formats', () => {
    expect(formatJson({ items: [{ a: 1 }, { a: 2 }] }, 'jsonpath={.items[*].a}')).toBe('1 2');
  });
});

describe('-o', () => {
  const parse = (text: string): unknown => outputOption().parseArg?.(text, undefined);

  test.each(['table', 'wide', 'name', 'json', 'yaml', 'jsonpath={[*].host.name}'])('%s', (format) => {
    expect(parse(format)).toBe(format);
  });

  test.each([
    ['xml', 'Allowed choices are table, wide, name, json, yaml, jsonpath=TEMPLATE.'],
    ['jsonpath=', 'jsonpath= has no template.'],
    ['jsonpath={[*].a', 'the jsonpath template, column 7: the action has no closing brace.'],
  ])('%s is rejected', (format, message) => {
    expect(() => parse(format)).toThrow(InvalidArgumentError);
    expect(() => parse(format)).toThrow(message);
  });
});
