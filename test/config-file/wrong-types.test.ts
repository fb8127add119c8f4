/** An object in the place of a field is a problem at that place, also one that JavaScript cannot convert to a text or a number. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { parseText } from '../cli/config/setup.ts';
import { NO_PRIMITIVE } from '../support/no-primitive.ts';

const FOLDER = new URL('../../config/', import.meta.url);

type Path = readonly (string | number)[];

function pathsOf(value: JsonValue, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const members = Array.isArray(value) ? value.entries() : Object.entries(value);
  return [path, ...[...members].flatMap(([step, member]) => pathsOf(member, [...path, step]))];
}

function replaced(value: JsonValue | undefined, [step, ...rest]: Path, by: JsonValue): JsonValue {
  if (step === undefined) return by;
  if (Array.isArray(value))
    return value.map((member, index) => (index === step ? replaced(member, rest, by) : member));
  const object = value as JsonObject; // of the path
  return { ...object, [step]: replaced(object[step], rest, by) };
}

/** All fields are in these files. */
const FILES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' });

test.each(FILES.filter((name) => name.endsWith('.yaml')))('%s', (name) => {
  const config = parse(readFileSync(new URL(name, FOLDER), 'utf8')) as JsonValue;
  const unplaced = pathsOf(config).flatMap((path) =>
    [NO_PRIMITIVE, [NO_PRIMITIVE]]
      .filter((wrong) => {
        const { problems } = parseText(JSON.stringify(replaced(config, path, wrong)));
        const hasError = problems.some(({ severity, line }) => severity === 'error' && line === 1);
        return !hasError && isOurs(path);
      })
      .map((wrong) => `${path.join('.')}: ${JSON.stringify(wrong)}`),
  );
  expect(unplaced).toEqual([]);
});

/** The other sections are those of vCluster, with keys that this program need not know. */
function isOurs([section = '']: Path): boolean {
  return section === 'endpointSyncer' || section === 'managementApi';
}
