/** Parsing and formatting of durations, sizes and bind addresses. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseBindAddress } from '../../src/base/bind-address.ts';
import {
  DURATION_PATTERN,
  formatBytes,
  formatDuration,
  parseBytes,
  parseDuration,
  QUANTITY_PATTERN,
} from '../../src/config-file/units.ts';

describe('durations', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['100ms', 100],
    ['15s', 15_000],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['168h', 604_800_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1_000],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['250μs', 0.25],
    ['1000000ns', 1],
    ['1s1s', 2_000],
  ])('%s is %d ms', (text, durationMs) => {
    expect(parseDuration(text)).toBeCloseTo(durationMs, 9);
    expect(text).toMatch(new RegExp(DURATION_PATTERN, 'u'));
  });

  test.each([
    '',
    ' ',
    '15',
    '00',
    '15 s',
    '-5s',
    '+5s',
    's',
    '1d',
    '1w',
    '1S',
    '1m 30s',
    '1e3s',
    '0x1s',
    '.s',
    '1,5s',
    '15sx',
    `${'9'.repeat(70)}s`,
  ])('%j is none', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test('a formatted duration parses to the same duration', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 11 }), (durationMs) => {
        expect(parseDuration(formatDuration(durationMs))).toBe(durationMs);
      }),
    );
  });
});

describe('sizes', () => {
  test.each([
    ['0', 0],
    ['1', 1],
    ['128Mi', 134_217_728],
    ['64Ki', 65_536],
    ['1Gi', 1_073_741_824],
    ['1k', 1_000],
    ['1G', 1e9],
    ['1.5Gi', 1_610_612_736],
    ['.5Mi', 524_288],
    ['1e6', 1e6],
    ['1E3', 1e3],
    ['0.1', 1],
  ])('%s is %d bytes', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
    expect(text).toMatch(new RegExp(QUANTITY_PATTERN, 'u'));
  });

  test.each([
    '',
    ' ',
    'Mi',
    '-1',
    '+1',
    '1 Mi',
    '1mi',
    '1MB',
    '1K',
    '100m',
    '1e',
    '1e999',
    '9Ei',
    '0x10',
    'NaN',
    '1Mi ',
    '١Mi',
  ])('%j is none', (text) => {
    expect(parseBytes(text)).toBeUndefined();
  });

  test('a formatted size parses to the same size', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(parseBytes(formatBytes(bytes))).toBe(bytes);
      }),
    );
  });

  test('any text parses to a whole number of bytes or undefined', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const bytes = parseBytes(text);
        expect(bytes === undefined || (Number.isSafeInteger(bytes) && bytes >= 0)).toBe(true);
      }),
    );
  });
});

describe('bind addresses', () => {
  test.each([
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    ['localhost:0', 'localhost', 0],
    [':8080', '', 8080],
    ['[::1]:65535', '::1', 65_535],
  ])('%s', (text, host, port) => {
    expect(parseBindAddress(text)).toEqual({ host, port });
  });

  test.each([
    '',
    '8080',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '::1:8080',
    'a b:1',
    'http://x:1',
    'x:-1',
    '[::1]',
    'x:1/y',
  ])('%j is none', (text) => {
    expect(parseBindAddress(text)).toBeUndefined();
  });
});
