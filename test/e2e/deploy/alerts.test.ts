/**
 * The alert rules of the chart, by promtool: valid, and firing for the series of `test/charts/alerts.promtool.yaml` as that file says. Neither rules
 * nor dashboard take series of vCluster, which may be scraped in the same namespace, for those of this program.
 */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
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

/** Runs promtool in a folder with the rules, for the namespace team-a, and these unit tests. */
async function promtool(tests: string, ...commands: readonly (readonly string[])[]): Promise<string> {
  const program =
    process.env['PROMTOOL'] ?? (await builtProgram('promtool', 'github.com/prometheus/prometheus'));
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-alerts-'));
  try {
    writeFileSync(join(folder, 'rules.yaml'), RULES.replaceAll('RELEASE_NAMESPACE', 'team-a'));
    writeFileSync(join(folder, 'tests.yaml'), tests);
    let printed = '';
    for (const command of commands)
      printed += (await promisify(execFile)(program, command, { cwd: folder })).stdout;
    return printed;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const UNIT_TESTS = ['test', 'rules', 'tests.yaml'];
/** Go builds promtool once. */
const BUILD_MAX = { timeout: 900_000 };

test('promtool accepts the rules, and their unit tests pass', BUILD_MAX, async () => {
  const tests = readFileSync(TESTS, 'utf8');
  const printed = await promtool(tests, ['check', 'rules', 'rules.yaml'], UNIT_TESTS);
  expect(printed).toMatch(/11 rules found[^]*SUCCESS/u);
});

/** Series of controller-runtime and client-go that vCluster has too. */
const OF_VCLUSTER = [
  'leader_election_master_status{name="vcluster-my-vcluster-controller"',
  'workqueue_depth{name="endpoints-controller"',
  'controller_runtime_reconcile_total{controller="endpoints", result="success"',
  'rest_client_requests_total{code="200", host="10.0.0.1:443", method="GET"',
  'process_resident_memory_bytes{job="vcluster"',
];

test(
  'of the series of vCluster alone, no panel and no rule but that of a missing release has a sample',
  BUILD_MAX,
  async () => {
    const { groups } = parse(RULES) as { groups: { rules: { alert: string; expr: string }[] }[] }; // our own file
    const dashboard = readFileSync(join(CHART, 'files', 'dashboard.json'), 'utf8');
    const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] }; // our own file
    const rules = groups
      .flatMap((group) => group.rules)
      .filter(({ alert }) => alert !== 'EndpointSyncerDown');
    const expressions = [...rules, ...panels.flatMap(({ targets }) => targets)].map(({ expr }) =>
      expr
        .replaceAll('$namespace', 'team-a')
        .replaceAll('$vcluster', '.*')
        .replaceAll('$__rate_interval', '5m'),
    );
    expect(expressions.length).toBeGreaterThan(15);
    const test = {
      interval: '1m',
      // A sidecar would have the same Pod, and another port.
      input_series: OF_VCLUSTER.map((series) => ({
        series: `${series}, namespace="team-a", pod="my-vcluster-0", instance="10.1.0.5:8443"}`,
        values: series.startsWith('leader') ? '0x60' : '0+60x60',
      })),
      promql_expr_test: expressions.map((expr) => ({ expr, eval_time: '30m', exp_samples: [] })),
    };
    const tests = stringify({ rule_files: ['rules.yaml'], evaluation_interval: '1m', tests: [test] });
    expect(await promtool(tests, UNIT_TESTS)).toContain('SUCCESS');
  },
);
