/** Every reported input in `test/cases/world` has one test that names it, so that none is copied and then forgotten. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WORLD } from './support/world-file.ts';

/** Files that another file of the corpus names. */
const READ_THROUGH: Readonly<Record<string, string>> = {
  'field/f6-files/config.yaml': 'field/f6-files/field.endpoint-syncer-test.yaml',
  'values/roundtrip/config.yaml': 'values/roundtrip/r.endpoint-syncer-test.yaml',
};

function filesBelow(folder: string, suffix = ''): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();
}

test('every reported input is named by one file of tests', () => {
  const sources = filesBelow(import.meta.dirname, '.ts')
    .filter((name) => name !== 'world.test.ts')
    .map((name) => [name, readFileSync(join(import.meta.dirname, name), 'utf8')] as const);
  const namedBy = (name: string): string[] =>
    sources.flatMap(([file, text]) => (text.includes(`'${name}'`) ? [file] : []));
  const files = filesBelow(WORLD);
  const tested = files.filter((name) => READ_THROUGH[name] === undefined);
  expect(Object.fromEntries(tested.map((name) => [name, namedBy(name)]))).toEqual(
    Object.fromEntries(tested.map((name) => [name, [expect.any(String)]])),
  );
  for (const [name, reader] of Object.entries(READ_THROUGH)) {
    expect([name, files.includes(name), namedBy(name)]).toEqual([name, true, []]);
    expect(files).toContain(reader);
  }
});
