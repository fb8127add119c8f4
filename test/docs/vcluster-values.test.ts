/** vCluster needs a right on slices that its chart takes away with their sync: whatever tells users to disable that sync names the rule. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { jsonEquals, valueAt, type JsonValue } from '../../src/base/json.ts';
import { keptRights } from '../../src/cli/migration.ts';
import { takeoverOf } from '../../src/syncer/config/values-in-force.ts';

const SLICE_RIGHTS = keptRights(
  takeoverOf(
    { sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: true } } } },
    undefined,
  ),
);
const RIGHTS = valueAt(SLICE_RIGHTS, ['rbac']) ?? null;
const ROOT = join(import.meta.dirname, '..', '..');
const NOTES = 'charts/endpoint-syncer/templates/NOTES.txt';
const PAGES = [
  'README.md',
  'charts/endpoint-syncer/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const documents = (text: string): JsonValue[] =>
  parseAllDocuments(text).map((document) => document.toJS() as JsonValue);
const isOff = (values: JsonValue, kind: string): boolean =>
  valueAt(values, ['sync', 'toHost', kind, 'enabled']) === false;

/** Values of vCluster's chart in which its sync is off. */
const disabling = PAGES.flatMap((page) =>
  [...read(page).matchAll(/^```yaml.*\n([^]*?)^```$/gmu)]
    .flatMap(([, block = '']) => documents(block))
    .filter((values) => isOff(values, 'endpoints') && isOff(values, 'endpointSlices'))
    .map((values) => ({ page, values })),
);

test('pages', () => {
  expect(new Set(disabling.map(({ page }) => page))).toEqual(
    new Set(['README.md', 'docs/deploy.md', 'docs/fleet.md', 'docs/migration.md']),
  );
  expect(disabling.filter(({ values }) => !jsonEquals(valueAt(values, ['rbac']) ?? null, RIGHTS))).toEqual(
    [],
  );
});

test('what Helm prints after the installation', () => {
  const [values = ''] = /^(?: {2}sync: .*\n {2}rbac: .*\n)/mu.exec(read(NOTES)) ?? [];
  expect(documents(values)[0]).toMatchObject(SLICE_RIGHTS);
});

test('no command disables it with --set, which cannot add the rule beside others', () => {
  expect(PAGES.filter((page) => /--set[^\n]*endpointSlices\.enabled=false/u.test(read(page)))).toEqual([]);
});
