/** The alert rules of the chart, by promtool: valid, and firing for the series of `test/charts/alerts.promtool.yaml` as that file says. */

import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { builtProgram } from './built-program.ts';
import { CHART } from './helm.ts';

const TESTS = join(import.meta.dirname, '..', '..', 'charts', 'alerts.promtool.yaml');
const RULES = readFileSync(join(CHART, 'files', 'alerts.yaml'), 'utf8');

interface AlertName {
  readonly alert: string;
}

test('every alert has a unit test in which it fires', () => {
  const { groups } = parse(RULES) as { groups: { rules: AlertName[] }[] }; // our own file
  const { tests } = parse(readFileSync(TESTS, 'utf8')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts?: object[] }[] }[];
  }; // our own file
  const firing = tests.flatMap((one) =>
    one.alert_rule_test
      .filter(({ exp_alerts: alerts }) => alerts !== undefined)
      .map(({ alertname }) => alertname),
  );
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(firing.toSorted()).toEqual(alerts.toSorted());
});

test('promtool accepts the rules, and their unit tests pass', { timeout: 900_000 }, async () => {
  const promtool =
    process.env['PROMTOOL'] ?? (await builtProgram('promtool', 'github.com/prometheus/prometheus'));
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-alerts-'));
  try {
    writeFileSync(join(folder, 'rules.yaml'), RULES.replaceAll('RELEASE_NAMESPACE', 'team-a'));
    copyFileSync(TESTS, join(folder, 'tests.yaml'));
    const run = (...args: readonly string[]) => promisify(execFile)(promtool, args, { cwd: folder });
    expect((await run('check', 'rules', 'rules.yaml')).stdout).toContain('8 rules found');
    expect((await run('test', 'rules', 'tests.yaml')).stdout).toContain('SUCCESS');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
