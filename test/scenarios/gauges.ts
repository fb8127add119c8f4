/** Every gauge of the daemon returns with what it measures, over reloads too. The table lists all of them. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { patched, rewrite } from './reload.ts';
import type { RunningDaemon } from './running-daemon.ts';
import type { NewWorld } from './world.ts';

/** What each gauge shows while nothing is synced: a value, no series, or any value because it measures the process. */
const AT_REST: Readonly<Record<string, number | 'absent' | 'any'>> = {
  workqueue_depth: 0,
  workqueue_unfinished_work_seconds: 0,
  workqueue_longest_running_processor_seconds: 0,
  controller_runtime_max_concurrent_reconciles: 0,
  controller_runtime_active_workers: 0,
  endpoint_syncer_cache_objects: 'absent',
  endpoint_syncer_cache_staleness_seconds: 'absent',
  endpoint_syncer_cache_synced: 'absent',
  endpoint_syncer_blocked_objects: 0,
  endpoint_syncer_deletions_held: 0,
  endpoint_syncer_referenced_kinds_missing: 0,
  endpoint_syncer_paths_never_matched: 0,
  endpoint_syncer_config_last_reload_successful: 1,
  endpoint_syncer_config_last_reload_success_timestamp_seconds: 'any',
  leader_election_master_status: 1,
  endpoint_syncer_access_keys_unconfirmed_seconds: 0,
  endpoint_syncer_access_keys: 'any',
  apiserver_current_inflight_requests: 0,
  endpoint_syncer_build_info: 1,
  process_resident_memory_bytes: 'any',
  process_start_time_seconds: 'any',
  nodejs_eventloop_lag_mean_seconds: 'any',
  nodejs_eventloop_lag_p50_seconds: 'any',
  nodejs_eventloop_lag_p99_seconds: 'any',
  nodejs_eventloop_lag_max_seconds: 'any',
};

const MISSING_KIND = {
  path: 'metadata.annotations.gone',
  reference: { apiVersion: 'example.org/v1', kind: 'Nothing' },
};

function note(expression: string): JsonObject {
  return { path: 'metadata.annotations.note', expression };
}

export function gaugeScenarios(newWorld: NewWorld): void {
  describe('gauges', () => {
    test('return with what they measure, over reloads too', async ({ expect }) => {
      await using world = await newWorld();
      world.expectErrors(/configuration file is invalid/u);
      const [port = 0] = await freePorts(1);
      const managementApi = { enabled: true, bindAddress: `127.0.0.1:${port}`, store: { driver: 'memory' } };
      const daemon = await world.startDaemon({
        config: { ...patched(note('"team-" + value.nope()'), MISSING_KIND), managementApi },
      });
      await world.createVirtual('default/web', { annotations: { note: 'x' } });
      const shows = (name: string, value: number, labels = {}) =>
        eventually(
          () => daemon.metric(name, labels),
          (seen) => seen === value,
          { what: `${name} of ${value}` },
        );
      await shows('endpoint_syncer_blocked_objects', 1, { reason: 'PatchFailed' });
      await shows('endpoint_syncer_referenced_kinds_missing', 1);
      await shows('endpoint_syncer_paths_never_matched', 1);

      await rewrite(daemon, (config) => ({ ...config, ...patched(note('"team-" + value'), MISSING_KIND) }));
      await world.whenCopy('default/web', ({ metadata }) => metadata.annotations?.['note'] === 'team-x');
      await shows('endpoint_syncer_blocked_objects', 0);

      await rewrite(daemon, (config) => ({ ...config, ...patched(note('value +')) }));
      await shows('endpoint_syncer_config_last_reload_successful', 0);

      const off = { enabled: false };
      const toHost = { endpoints: off, endpointSlices: off };
      await rewrite(daemon, (config) => ({ ...config, sync: { toHost } }));
      await shows('endpoint_syncer_config_last_reload_successful', 1);
      expect(Object.keys(await gauges(daemon)).toSorted()).toEqual(Object.keys(AT_REST).toSorted());
      const fixed = Object.entries(AT_REST).filter(([, value]) => value !== 'any');
      const seen = async (): Promise<unknown> => {
        const found = await gauges(daemon);
        return Object.fromEntries(fixed.map(([name]) => [name, found[name]]));
      };
      await expect
        .poll(seen)
        .toEqual(Object.fromEntries(fixed.map(([name, value]) => [name, value === 'absent' ? [] : [value]])));
    });

    test('tell of writes that an API server refuses, and of nothing more once it takes them', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      host.behaviour = {
        decide: ({ method, path }) =>
          method === 'POST' && path.includes('/endpoints')
            ? { kind: 'refuse', status: 403, reason: 'Forbidden' }
            : { kind: 'pass' },
      };
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path } });
      await world.createVirtual('default/web');
      const refused = (): Promise<number> =>
        daemon.metric('endpoint_syncer_blocked_objects', { reason: 'Forbidden' });
      await eventually(refused, (count) => count === 1, { what: 'a refused object' });
      expect(
        await daemon.metric('endpoint_syncer_writes_forbidden_total', { cluster: 'host' }),
      ).toBeGreaterThan(0);
      expect(await writesCheck(daemon)).toMatch(/^ok: 1 endpoints is not written: \S/u);
      host.behaviour = { decide: () => ({ kind: 'pass' }) };
      await world.whenCopy('default/web');
      await eventually(refused, (count) => count === 0, { what: 'no refused object' });
      expect(await writesCheck(daemon)).toBe('ok');
    });
  });
}

/** In `/readyz?verbose`: what follows the name of the check. */
async function writesCheck(daemon: RunningDaemon): Promise<string> {
  const { text } = await daemon.get('/readyz?verbose');
  return /^\[\+\]writes (.*)$/mu.exec(text)?.[1] ?? text;
}

/** The distinct values of each gauge. */
async function gauges(daemon: RunningDaemon): Promise<Readonly<Record<string, readonly number[]>>> {
  const { text } = await daemon.get('/metrics');
  const names = [...text.matchAll(/^# TYPE (\S+) gauge$/gmu)].map(([, name = '']) => name);
  return Object.fromEntries(
    names.map((name) => {
      const samples = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gmu'));
      return [name, [...new Set([...samples].map(([, value]) => Number(value)))]];
    }),
  );
}
