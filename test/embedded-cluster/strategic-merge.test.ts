/** Properties of strategic merge patches for any input. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mergeApplied } from '../../src/apiserver/patch/field-set.ts';
import { strategicMerge } from '../../src/embedded-cluster/strategic-merge.ts';
import { type JsonObject, jsonEquals, mergePatch } from '../../src/base/json.ts';
import { SERVICE, label, labels, port } from '../apiserver/random-services.ts';

describe('patches', () => {
  test('strategic merge of fields without a merge strategy is a merge patch', () => {
    fc.assert(
      fc.property(labels, fc.dictionary(label, fc.option(fc.constantFrom('1', '2'))), (before, change) => {
        const target = { metadata: { labels: before } };
        const patch = { metadata: { labels: change } };
        expect(jsonEquals(strategicMerge(SERVICE, target, patch), mergePatch(target, patch))).toBe(true);
      }),
    );
  });

  test('strategic merge keeps one item per merge key, in the order of the patch', () => {
    const items = fc.uniqueArray(port, { maxLength: 4, selector: (item) => item.port });
    fc.assert(
      fc.property(items, items, (before, change) => {
        const result = strategicMerge(SERVICE, { spec: { ports: before } }, { spec: { ports: change } });
        const { ports } = result['spec'] as { ports: { port: number }[] }; // the patch has ports
        const numbers = ports.map((item) => item.port);
        const asked: number[] = change.map((item) => item.port);
        expect(
          new Set(numbers).size === numbers.length &&
            numbers.length === new Set([...before, ...change].map((item) => item.port)).size &&
            jsonEquals(
              numbers.filter((number) => asked.includes(number)),
              asked,
            ),
        ).toBe(true);
      }),
    );
  });

  test('never reach a prototype', () => {
    const evil = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as JsonObject; // our own text
    mergePatch({}, evil);
    strategicMerge(SERVICE, {}, evil);
    mergeApplied(SERVICE, {}, evil);
    expect(Object.prototype).not.toHaveProperty('polluted');
    expect(Object.keys(mergePatch({}, evil))).toEqual(['__proto__', 'constructor']);
  });
});
