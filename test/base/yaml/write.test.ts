/** What is written is read as the same value by readers of YAML 1.1 and 1.2. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonValue } from '../../../src/base/json.ts';
import { parseYaml } from '../../../src/base/yaml/document.ts';
import { editableYaml, writeYaml } from '../../../src/base/yaml/write.ts';
import { sameValue } from './go-reader.ts';
import { trickyValue } from './yaml-texts.ts';

test.each([
  [{ on: 'no', '1.10': '1e1_0' }, '"on": "no"\n"1.10": "1e1_0"\n'],
  [
    ['0X1F', '1:30', '2026-01-01', '10.0.0.1', '~', ''],
    '- "0X1F"\n- "1:30"\n- "2026-01-01"\n- 10.0.0.1\n- "~"\n- ""\n',
  ],
  [{ a: 'x\u2028\u0085\u009b\t' }, 'a: "x\\u2028\\u0085\\u009b\\t"\n'],
  [{ a: 'if (x) {\n  y\n}\n', b: 'a \nb' }, 'a: |\n  if (x) {\n    y\n  }\nb: "a \\nb"\n'],
  [{ a: '"team-" + value' }, 'a: \'"team-" + value\'\n'],
])('%j', (value, text) => {
  expect(writeYaml(value)).toBe(text);
});

test.each([{}, { isFlow: true }, { isSorted: true }])('any value: %j', (style) => {
  fc.assert(
    fc.property(trickyValue, (value) => {
      const text = writeYaml(value, style);
      const { json, duplicates, isReadable } = parseYaml(text);
      expect({ isSame: sameValue(value, json), duplicates, isReadable }).toEqual({
        isSame: true,
        duplicates: [],
        isReadable: true,
      });
      for (const version of ['1.1', '1.2'] as const)
        expect(sameValue(value, parse(text, { version }) as JsonValue)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test('an edited file keeps what is not edited, in its style', () => {
  const text = '# c\non: 0x1F\n8080: "a"\nlist: [yes, 1.10]\nb: |\n  x\n';
  const document = editableYaml(text);
  document.setIn(['true'], 'no');
  document.setIn(['new', 'off'], '1.10');
  expect(document.toString({ lineWidth: 0, flowCollectionPadding: false })).toBe(
    '# c\non: "no"\n8080: "a"\nlist: [yes, 1.10]\nb: |\n  x\nnew:\n  "off": "1.10"\n',
  );
});
