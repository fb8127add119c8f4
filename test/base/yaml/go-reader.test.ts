/** What is written and read here is what kubectl, Helm and vCluster read: their reader is run beside ours. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import { parseYaml } from '../../../src/base/yaml/document.ts';
import { writeYaml } from '../../../src/base/yaml/write.ts';
import { hasGo } from '../../support/go-program.ts';
import { readInGo, sameValue } from './go-reader.ts';
import { yamlScalar, yamlText, trickyValue } from './yaml-texts.ts';

const RUNS = 3000;
/** Of the generated texts; another one finds other texts. */
const SEED = Number(process.env['YAML_SEED'] ?? 1);

function samples<T>(of: fc.Arbitrary<T>, count = RUNS): T[] {
  return fc.sample(of, { numRuns: count, seed: SEED });
}

/** The texts that our reader takes for something that Go's does not; those that it refuses are no difference. */
function differences(texts: readonly string[]): object[] {
  const read = readInGo(texts);
  return texts.flatMap((text, index) => {
    const { json, isReadable, duplicates } = parseYaml(text);
    const go = read[index];
    if (
      !isReadable ||
      duplicates.length > 0 ||
      (go !== undefined && 'json' in go && sameValue(json, go.json))
    )
      return [];
    return [{ text, json, go }];
  });
}

describe.skipIf(!hasGo)('beside sigs.k8s.io/yaml', () => {
  test('unquoted text is the same value, as a value and as a key', () => {
    const scalars = samples(yamlScalar, 4 * RUNS);
    const texts = scalars.flatMap((scalar) => [`a: ${scalar}\n`, `${scalar}: a\n`, `[${scalar}]`]);
    expect(differences(texts)).toEqual([]);
  });

  test('a text is read as the same value, or refused', () => {
    const texts = samples(yamlText);
    expect(differences(texts)).toEqual([]);
    expect(texts.filter((text) => parseYaml(text).isReadable).length).toBeGreaterThan(RUNS / 5);
  });

  test.each([{}, { isFlow: true }, { isSorted: true }])(
    'what is written is read as what it was: %j',
    (style) => {
      const values = samples(trickyValue);
      const read = readInGo(values.map((value) => writeYaml(value, style)));
      const wrong = values.flatMap((value: JsonValue, index) => {
        const go = read[index];
        const isRight = go !== undefined && 'json' in go && sameValue(value, go.json);
        return isRight ? [] : [{ value, text: writeYaml(value, style), go }];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
    },
  );
});
