/** The metrics: every series exists from the start, and counts what is reported to it. */

import { describe, expect, test } from 'vitest';
import { createMetrics, createSyncMetrics, type Metrics } from '../../../src/syncer/metrics/metrics.ts';

let nowMs = 0;

function prepare(): Metrics {
  nowMs = 0;
  return createMetrics({ monotonicMs: () => nowMs, version: '1.2.3' });
}

async function samples(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  );
}

const FAMILIES = [
  'workqueue_depth',
  'workqueue_adds_total',
  'workqueue_queue_duration_seconds',
  'workqueue_work_duration_seconds',
  'workqueue_retries_total',
  'workqueue_unfinished_work_seconds',
  'workqueue_longest_running_processor_seconds',
  'controller_runtime_reconcile_total',
  'controller_runtime_reconcile_errors_total',
  'controller_runtime_reconcile_time_seconds',
  'controller_runtime_active_workers',
  'controller_runtime_max_concurrent_reconciles',
  'rest_client_requests_total',
  'rest_client_request_duration_seconds',
  'leader_election_master_status',
  'endpoint_syncer_patch_duration_seconds',
  'endpoint_syncer_patch_errors_total',
  'endpoint_syncer_memo_lookups_total',
  'endpoint_syncer_expressions_total',
  'endpoint_syncer_sandbox_batch_matches',
  'endpoint_syncer_sandbox_kills_total',
  'endpoint_syncer_sync_latency_seconds',
  'endpoint_syncer_watch_restarts_total',
  'endpoint_syncer_watch_events_total',
  'endpoint_syncer_cache_objects',
  'endpoint_syncer_cache_staleness_seconds',
  'endpoint_syncer_cache_synced',
  'endpoint_syncer_deletions_held',
  'endpoint_syncer_referenced_kinds_missing',
  'endpoint_syncer_blocked_objects',
  'endpoint_syncer_writes_forbidden_total',
  'endpoint_syncer_writes_total',
  'endpoint_syncer_paths_never_matched',
  'endpoint_syncer_events_total',
  'endpoint_syncer_config_reloads_total',
  'endpoint_syncer_config_last_reload_successful',
  'endpoint_syncer_config_last_reload_success_timestamp_seconds',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
  'endpoint_syncer_build_info',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
];

describe('metrics', () => {
  test('have these families, and no others', async () => {
    const text = await prepare().text();
    const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]);
    expect(new Set(families)).toEqual(new Set(FAMILIES));
  });

  test('start at zero', async () => {
    const metrics = prepare();
    metrics.queue('endpoints');
    metrics.controller('endpoints', 10);
    metrics.requests('h:1');
    const informer = metrics.informer('host', 'endpoints');
    informer.expect('watching', 'silent');
    metrics.leads('lease', false);
    const values = await samples(metrics);
    for (const name of [
      'workqueue_adds_total{name="endpoints",controller="endpoints"}',
      'workqueue_queue_duration_seconds_count{name="endpoints",controller="endpoints"}',
      'controller_runtime_reconcile_total{controller="endpoints",result="requeue_after"}',
      'controller_runtime_reconcile_errors_total{controller="endpoints"}',
      'controller_runtime_reconcile_time_seconds_count{controller="endpoints"}',
      'rest_client_requests_total{code="<error>",method="PUT",host="h:1"}',
      'leader_election_master_status{name="lease"}',
      'endpoint_syncer_watch_restarts_total{cluster="host",resource="endpoints",phase="watching",reason="silent"}',
      'endpoint_syncer_watch_events_total{cluster="host",resource="endpoints",type="ignored"}',
    ]) {
      expect([name, values.get(name)]).toEqual([name, 0]);
    }
    expect(values.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(values.get('process_start_time_seconds')).toBeGreaterThan(1.7e9);
  });

  test('show the reported values', async () => {
    const metrics = prepare();
    metrics.controller('endpoints', 1).reconciled('error', 0.02);
    metrics.requests('h:1').requested('PUT', '422', 0.5);
    metrics.leads('lease', true);
    const values = await samples(metrics);
    expect(values.get('controller_runtime_reconcile_total{controller="endpoints",result="error"}')).toBe(1);
    expect(values.get('controller_runtime_reconcile_errors_total{controller="endpoints"}')).toBe(1);
    expect(
      values.get('controller_runtime_reconcile_time_seconds_bucket{le="0.025",controller="endpoints"}'),
    ).toBe(1);
    expect(values.get('rest_client_requests_total{code="422",method="PUT",host="h:1"}')).toBe(1);
    expect(values.get('leader_election_master_status{name="lease"}')).toBe(1);
  });

  test('count the keys that workers process', async () => {
    const metrics = prepare();
    const queue = metrics.queue('endpoints');
    const labels = '{name="endpoints",controller="endpoints"}';
    queue.queued(0.1);
    nowMs = 2000;
    queue.queued(0.1);
    nowMs = 5000;
    let values = await samples(metrics);
    expect(values.get(`workqueue_unfinished_work_seconds${labels}`)).toBe(8);
    expect(values.get(`workqueue_longest_running_processor_seconds${labels}`)).toBe(5);
    queue.worked(5);
    values = await samples(metrics);
    expect(values.get(`workqueue_unfinished_work_seconds${labels}`)).toBe(3);
    expect(values.get(`workqueue_longest_running_processor_seconds${labels}`)).toBe(3);
    queue.worked(3);
    expect((await samples(metrics)).get(`workqueue_unfinished_work_seconds${labels}`)).toBe(0);
  });

  test('keep their counts and values when the same handles are requested again, as a reload does', async () => {
    const metrics = prepare();
    const [controller, queue] = [metrics.controller('endpoints', 1), metrics.queue('endpoints')];
    controller.reconciled('success', 1);
    controller.running(true);
    queue.depth(3);
    queue.queued(0);
    metrics.informer('host', 'endpoints').watchState(() => state(7));
    nowMs = 1000;
    metrics.queue('endpoints');
    metrics.informer('host', 'endpoints');
    metrics.controller('endpoints', 1).reconciled('success', 1);
    const values = await samples(metrics);
    const labels = '{name="endpoints",controller="endpoints"}';
    expect(values.get('controller_runtime_reconcile_time_seconds_count{controller="endpoints"}')).toBe(2);
    expect(values.get('controller_runtime_max_concurrent_reconciles{controller="endpoints"}')).toBe(1);
    expect(values.get(`workqueue_depth${labels}`)).toBe(3);
    expect(values.get(`workqueue_unfinished_work_seconds${labels}`)).toBe(1);
    expect(values.get(objects)).toBe(7);
  });

  test('of an informer exist as long as it runs; the one that started last is shown', async () => {
    const metrics = prepare();
    const end = metrics.informer('host', 'endpoints').watchState(() => state(1));
    const endNext = metrics.informer('host', 'endpoints').watchState(() => state(7));
    end();
    const values = await samples(metrics);
    expect(values.get(objects)).toBe(7);
    expect(values.get('endpoint_syncer_cache_staleness_seconds{cluster="host",resource="endpoints"}')).toBe(
      2,
    );
    expect(values.get('endpoint_syncer_cache_synced{cluster="host",resource="endpoints"}')).toBe(1);
    endNext();
    // A cache that is gone is neither stale nor missing.
    expect([...(await samples(metrics)).keys()].filter((name) => name.includes('_cache_'))).toEqual([]);
  });
});

const objects = 'endpoint_syncer_cache_objects{cluster="host",resource="endpoints"}';

function state(size: number) {
  return { objects: size, stalenessSeconds: 2, isSynced: true };
}

test('the series of a sync have its label, and are none of the process', async () => {
  const { registry, sync } = createSyncMetrics(() => nowMs, { vcluster: 'team-a/one' });
  sync.deletionsHeld(true);
  const lines = (await registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines).toContain('endpoint_syncer_deletions_held{vcluster="team-a/one"} 1');
  expect(lines.filter((line) => !/[{,]vcluster="team-a\/one"[,}]/u.test(line))).toEqual([]);
  expect(lines.filter((line) => line.startsWith('process_'))).toEqual([]);
});
