/** The series of syncing, patching and the sandbox: from the start, and by what is reported. */

import { expect, test } from 'vitest';
import { SeriesRegistry } from '../../../src/base/metrics/series.ts';
import { syncSeries, type SyncSeries } from '../../../src/syncer/metrics/sync-series.ts';

/** `endpoint_syncer_` is left out. */
async function samples(report: (series: SyncSeries) => void): Promise<Record<string, number>> {
  const registry = new SeriesRegistry();
  report(syncSeries(registry));
  const lines = (await registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice('endpoint_syncer_'.length, at), Number(line.slice(at + 1))];
    }),
  );
}

test('every known outcome is 0 from the start, so that a rate is right from the first one on', async () => {
  expect(await samples(() => undefined)).toMatchObject({
    'blocked_objects{reason="NotManaged"}': 0,
    'writes_total{cluster="host",verb="delete",result="error"}': 0,
    'writes_total{cluster="virtual",verb="patch",result="ok"}': 0,
    'patch_errors_total{reason="killed"}': 0,
    'sandbox_kills_total{reason="timeout"}': 0,
    'memo_lookups_total{result="miss"}': 0,
    sync_latency_seconds_count: 0,
    'events_total{result="dropped"}': 0,
    'config_reloads_total{result="error"}': 0,
    deletions_held: 0,
  });
});

test.each<[string, (series: SyncSeries) => void, Record<string, number>]>([
  [
    'a reason of a later version',
    (series) => series.blocked('endpoints', 'NewReason', 3),
    { 'blocked_objects{reason="NewReason"}': 3 },
  ],
  [
    'objects that are no longer blocked',
    (series) => [2, 0].forEach((count) => series.blocked('endpoints', 'NotManaged', count)),
    { 'blocked_objects{reason="NotManaged"}': 0 },
  ],
  [
    'blocked objects of several kinds, and references apart from them',
    (series) => {
      series.blocked('endpoints', 'SyncError', 2);
      series.blocked('services', 'SyncError', 3);
      series.blocked('references', 'SyncError', 5);
      series.blocked('references', 'ReferenceNotFound', 7);
    },
    {
      'blocked_objects{reason="SyncError"}': 5,
      'blocked_objects{reason="ReferenceSyncError"}': 5,
      'blocked_objects{reason="ReferenceNotFound"}': 7,
    },
  ],
  [
    'writes',
    (series) =>
      (['ok', 'ok', 'error'] as const).forEach((result) => series.written('host', 'create', result)),
    {
      'writes_total{cluster="host",verb="create",result="ok"}': 2,
      'writes_total{cluster="host",verb="create",result="error"}': 1,
    },
  ],
  [
    'lookups',
    (series) => series.memo(5, 2),
    { 'memo_lookups_total{result="hit"}': 5, 'memo_lookups_total{result="miss"}': 2 },
  ],
  [
    'a latency on the edge of its bucket',
    (series) => series.latency(0.002),
    { 'sync_latency_seconds_bucket{le="0.001"}': 0, 'sync_latency_seconds_bucket{le="0.002"}': 1 },
  ],
  [
    'an end of the sandbox',
    (series) => series.sandboxKilled('exit'),
    { 'sandbox_kills_total{reason="exit"}': 1 },
  ],
  [
    'expressions',
    (series) => {
      series.evaluated('daemon', 5);
      series.evaluated('sandbox', 2);
    },
    { 'expressions_total{place="daemon"}': 5, 'expressions_total{place="sandbox"}': 2 },
  ],
  [
    'a failed reload',
    (series) => {
      series.reloaded('error');
      series.configurationApplied(false);
    },
    { 'config_reloads_total{result="error"}': 1, config_last_reload_successful: 0 },
  ],
  [
    'deletions that are made again',
    (series) => [true, false].forEach((isHeld) => series.deletionsHeld(isHeld)),
    { deletions_held: 0 },
  ],
  ['deletions that are held', (series) => series.deletionsHeld(true), { deletions_held: 1 }],
])('%s', async (_, report, expected) => {
  expect(await samples(report)).toMatchObject(expected);
});

test('one configuration is in use, the last one', async () => {
  const found = await samples((series) => {
    series.configurationInUse('a', 1);
    series.configurationInUse('b', 2);
  });
  const name = 'config_last_reload_success_timestamp_seconds';
  expect(Object.entries(found).filter(([key]) => key.startsWith(name))).toEqual([[`${name}{hash="b"}`, 2]]);
});
