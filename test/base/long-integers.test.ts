/** JSON with integers beyond 2^53, which keep their digits. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/base/json.ts';

const SOURCE = join(import.meta.dirname, '../../src');

/** A text and what it says. */
interface Sample {
  readonly text: string;
  readonly value: unknown;
}

function isLong(digits: string): boolean {
  return /^-?[1-9]\d{15,19}$/.test(digits) && !Number.isSafeInteger(Number(digits));
}

/** The values of the parser, but for long integers. */
function rounded(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? 'not rounded' : Number(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.create(Object.getPrototypeOf(value) as object) as object;
  for (const [key, member] of Object.entries(value))
    Object.defineProperty(copy, key, { ...PLAIN, value: rounded(member) });
  return copy;
}

const PLAIN = { writable: true, enumerable: true, configurable: true };

function outcome(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch (error) {
    return error instanceof SyntaxError ? { message: error.message } : { error };
  }
}

const number: fc.Arbitrary<Sample> = fc
  .oneof(
    fc.bigInt({ min: -(10n ** 22n), max: 10n ** 22n }).map(String),
    fc.constantFrom(
      '9007199254740991',
      '9007199254740992',
      '-9007199254740993',
      '1234567890123456',
      '-0',
      '7',
    ),
    fc.constantFrom(
      '1234567890123456789.5',
      '12345678901234567890e2',
      '0.1234567890123456789',
      '1e12345678901234567890',
    ),
  )
  .map((text) => ({ text, value: isLong(text) ? BigInt(text) : Number(text) }));
const string = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom(
      '__proto__',
      'a',
      '1',
      'length',
      '1234567890123456789',
      '[1234567890123456789,',
      '\\',
      '\\"',
      '"}',
    ),
    fc.tuple(number, fc.string({ maxLength: 3 })).map(([{ text }, more]) => `${more}:${text},"`),
  )
  .map((value) => ({ text: JSON.stringify(value), value }));
/** V8 mistakes some keys with escapes for others that it knows, in `JSON.parse` alone too. */
const key = string.filter(({ text }) => !text.includes('\\'));
const literal = fc.constantFrom<Sample>({ text: 'true', value: true }, { text: 'null', value: null });
const space = fc.constantFrom('', '', ' ', '\n\t');
const { value: sample } = fc.letrec<Record<'value' | 'list' | 'object', Sample>>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, number, string, literal, tie('list'), tie('object')),
  list: fc.tuple(space, fc.array(tie('value'), { maxLength: 5 })).map(([s, all]) => ({
    text: `[${s}${all.map(({ text }) => text).join(`${s},${s}`)}${s}]`,
    value: all.map(({ value }) => value),
  })),
  object: fc.tuple(space, fc.array(fc.tuple(key, tie('value')), { maxLength: 5 })).map(([s, all]) => {
    const value = {};
    for (const [key, member] of all)
      Object.defineProperty(value, key.value, { ...PLAIN, value: member.value });
    return {
      text: `{${s}${all.map(([name, { text }]) => `${name.text}${s}:${s}${text}`).join(`${s},`)}${s}}`,
      value,
    };
  }),
}));

describe('JSON text', () => {
  test('has the digits of each integer, also where fields are named twice', () => {
    fc.assert(
      fc.property(space, sample, (s, { text, value }) => {
        expect(parseJson(s + text + s)).toStrictEqual(value);
      }),
      { numRuns: 2000 },
    );
  });

  test('that is broken anywhere has the values or the error of the parser', () => {
    const breaking = fc.constantFrom(
      '',
      '"',
      '[',
      ']',
      '{',
      '}',
      ',',
      ':',
      '-',
      '0',
      '1234567890123456789',
      '\\',
      'x',
      ' ',
    );
    fc.assert(
      fc.property(sample, fc.nat(), fc.nat(3), breaking, ({ text }, place, removed, inserted) => {
        const at = place % (text.length + 1);
        const broken = text.slice(0, at) + inserted + text.slice(at + removed);
        expect(outcome(() => rounded(parseJson(broken)))).toStrictEqual(outcome(() => JSON.parse(broken)));
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    '{12345678901234567890:1}',
    '{"a":1,12345678901234567890:1}',
    '{"a":1,12345678901234567890}',
    '[01234567890123456789]',
    '["a"12345678901234567890]',
    '[12345678901234567890"a"]',
    '[12345678901234567890 12345678901234567890]',
    '[- 12345678901234567890]',
    '[+12345678901234567890]',
  ])('%s is rejected with the error of the parser', (text) => {
    const expected = outcome(() => JSON.parse(text));
    expect(expected).toHaveProperty('message');
    expect(outcome(() => parseJson(text))).toEqual(expected);
  });

  test('nested as deep as it is long is read', () => {
    const depth = 500_000;
    let value: unknown = parseJson(`${'['.repeat(depth)}12345678901234567890${']'.repeat(depth)}`);
    while (Array.isArray(value)) value = value[0];
    expect(value).toBe(12345678901234567890n);
  });
});

test('no import changes a prototype, and the start of the program one', async () => {
  const script = `
    const names = Object.getOwnPropertyNames(globalThis);
    const descriptions = () => names.flatMap((name) => {
      const prototype = globalThis[name]?.prototype ?? {};
      return Reflect.ownKeys(prototype).map((key) => [name, String(key)].join(' '));
    });
    const before = new Set(descriptions());
    await import(${JSON.stringify(`${SOURCE}/cli/program.ts`)});
    await import(${JSON.stringify(`${SOURCE}/cli/run.ts`)});
    await import(${JSON.stringify(`${SOURCE}/cli/api.ts`)});
    const { writeLongIntegers } = await import(${JSON.stringify(`${SOURCE}/base/json.ts`)});
    const added = () => descriptions().filter((one) => !before.has(one));
    const imported = added();
    writeLongIntegers();
    console.log(JSON.stringify({ imported, started: added(), text: JSON.stringify([12345678901234567890n]) }));`;
  const args = ['--no-warnings', '--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual({
    imported: [],
    started: ['BigInt toJSON'],
    text: '[12345678901234567890]',
  });
});
