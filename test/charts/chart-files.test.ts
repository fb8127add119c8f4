/** What the chart ships as plain files: its schema, the alert rules and the dashboard agree with the program and the documentation. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  chartReadme,
  chartSchema,
  CHART_README_FILE,
  CHART_SCHEMA_FILE,
} from '../../scripts/chart-values.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';
import { servedSeries } from './served-series.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FILES = join(ROOT, 'charts', 'endpoint-syncer', 'files');

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}
interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
}

const { groups } = parse(readFileSync(join(FILES, 'alerts.yaml'), 'utf8')) as {
  groups: readonly { readonly rules: readonly AlertRule[] }[];
}; // our own file
const { panels } = JSON.parse(readFileSync(join(FILES, 'dashboard.json'), 'utf8')) as Dashboard; // our own file
const RULES = groups.flatMap(({ rules }) => rules);

test('values.schema.json has the schema of the configuration (npm run schema -- --write)', () => {
  expect(readFileSync(CHART_SCHEMA_FILE, 'utf8')).toBe(chartSchema());
});

test('README.md of the chart has a table of its values (npm run schema -- --write)', () => {
  expect(readFileSync(CHART_README_FILE, 'utf8')).toBe(chartReadme());
  expect(chartReadme()).toContain('| `replicaCount` | `1` | With more than one, a Lease elects');
});

test("the default values have no list of patches, which would replace the one in vCluster's values", () => {
  const { config } = parse(readFileSync(join(FILES, '..', 'values.yaml'), 'utf8')) as { config: unknown }; // our own file
  expect(config).toMatchObject({ sync: { toHost: { endpoints: { enabled: true } } } });
  expect(JSON.stringify(config)).not.toContain('patches');
});

test('the values of the READMEs and Install are those of ci/, which a test starts', () => {
  const values = readFileSync(join(FILES, '..', 'ci', 'patches-values.yaml'), 'utf8');
  for (const page of ['deploy.md', '../README.md', '../charts/endpoint-syncer/README.md'])
    expect([page, documentedBlocks(page).get('values.yaml')]).toEqual([page, values]);
});

describe('alert rules and dashboard name series that exist, with labels that they have', () => {
  const expressions = [
    ...RULES.map(({ expr }) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];

  test.each(expressions)('%s', async (expression) => {
    const served = await servedSeries();
    const names =
      expression.match(/[a-z]+_[a-z_]+(?=[{[)\s]|$)/gu)?.filter((word) => word !== 'histogram_quantile') ??
      [];
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !served.has(name))).toEqual([]);
    const labels = names.flatMap((name) => [...(served.get(name) ?? [])]);
    // The members of a fleet have the label vcluster.
    for (const label of labelsIn(expression))
      expect([...labels, 'namespace', 'instance', 'le', 'vcluster']).toContain(label);
  });
});

test.each(RULES)('$alert has a runbook paragraph', ({ alert, annotations }) => {
  const { pathname, hash } = new URL(annotations.runbook_url);
  expect([pathname, hash]).toEqual(['/endpoint-syncer/operations.html', `#${alert.toLowerCase()}`]);
  expect(readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8')).toMatch(
    new RegExp(`^### ${alert}\\n\\n\\S`, 'mu'),
  );
});

/** Labels that an expression selects, groups or matches by. */
function labelsIn(expression: string): string[] {
  const grouped = [...expression.matchAll(/(?:by|on) \(([^)]*)\)/gu)].flatMap(([, names = '']) =>
    names.split(/, ?/u),
  );
  const selected = [...expression.matchAll(/\{(\w+)=/gu)].map(([, name = '']) => name);
  return [...grouped, ...selected];
}
