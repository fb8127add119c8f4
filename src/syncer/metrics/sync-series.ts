/** `endpoint_syncer_*` of syncing, patching and the sandbox. */

import type { Count, Observe, SeriesRegistry } from '../../base/metrics/series.ts';

export interface SyncSeries {
  /** Objects of one controller; the series has the sum of those of all kinds. */
  blocked(controller: string, reason: string, count: number): void;
  kindsMissing(count: number): void;
  /** Copies of objects that are gone are not deleted. */
  deletionsHeld(isHeld: boolean): void;
  latency(seconds: number): void;
  written(cluster: string, verb: 'create' | 'update' | 'patch' | 'delete', result: 'ok' | 'error'): void;
  /** All patches of one object, in one direction. */
  patched(seconds: number): void;
  /** One patch failed on one object; `reason` is a `PatchErrorKind`. */
  patchFailed(reason: string): void;
  memo(hits: number, misses: number): void;
  batched(matches: number): void;
  /** The sandbox process was killed by its watchdog, or exited. */
  sandboxKilled(reason: string): void;
  event(result: 'sent' | 'dropped' | 'error'): void;
  reloaded(result: 'ok' | 'error'): void;
  /** The hash of the configuration in use, and since when it is, in seconds since the epoch. */
  configurationInUse(hash: string, sinceSeconds: number): void;
  /** Whether all of what the files say is in use. */
  configurationApplied(isApplied: boolean): void;
}

const LATENCY_BUCKETS = [
  0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60,
];
const PATCH_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];
const BATCH_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000];

const BLOCKED = [
  'NotManaged',
  'NameConflict',
  'NamespaceNotMapped',
  'NamespaceNotFound',
  'PatchFailed',
  'SyncError',
  'Contested',
  'ReferenceNotFound',
  'ReferenceNotAllowed',
];
const PATCH_ERRORS = [
  'syntax',
  'forbidden',
  'runtime',
  'timeout',
  'memory',
  'result',
  'result-size',
  'killed',
];
const KILLS = ['timeout', 'memory', 'exit'];

export function syncSeries(registry: SeriesRegistry): SyncSeries {
  return {
    ...hostSeries(registry),
    ...patchSeries(registry),
    ...outcomeSeries(registry),
    ...configurationSeries(registry),
  };
}

function hostSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'blocked' | 'deletionsHeld' | 'kindsMissing' | 'latency' | 'written'> {
  const missing = registry.gauge({
    name: 'endpoint_syncer_referenced_kinds_missing',
    help: 'Kinds that patches reference and that a cluster does not serve, or of which objects cannot be listed.',
    labels: [],
  });
  const held = registry.gauge({
    name: 'endpoint_syncer_deletions_held',
    help: '1 while copies of objects that are gone are not deleted, because the virtual cluster seems to be another one.',
    labels: [],
  });
  const setHeld = held.of({});
  setHeld(0);
  const blocked = registry.gauge({
    name: 'endpoint_syncer_blocked_objects',
    help: 'Objects that are not synced at the moment, by reason.',
    labels: ['reason'],
  });
  const writes = registry.counter({
    name: 'endpoint_syncer_writes_total',
    help: 'Writes by cluster, verb and result.',
    labels: ['cluster', 'verb', 'result'],
  });
  const latency = registry.histogram({
    name: 'endpoint_syncer_sync_latency_seconds',
    help: 'From the event of a change in one cluster to the end of the write in the other.',
    buckets: LATENCY_BUCKETS,
  });
  const byReason = byName(BLOCKED, (reason) => blocked.of({ reason }));
  const blockedCounts = new Map<string, Map<string, number>>();
  const combinations = ['host', 'virtual'].flatMap((cluster) =>
    ['create', 'update', 'patch', 'delete'].flatMap((verb) =>
      ['ok', 'error'].map((result) => `${cluster} ${verb} ${result}`),
    ),
  );
  const byWrite = byName(combinations, (name) => {
    const [cluster = '', verb = '', result = ''] = name.split(' ');
    return writes.of({ cluster, verb, result });
  });
  return {
    kindsMissing: missing.of({}),
    deletionsHeld: (isHeld) => setHeld(isHeld ? 1 : 0),
    blocked(controller, reason, count) {
      // Blocked references are counted apart from blocked objects that name them.
      const isOfReference = controller === 'references' && !reason.startsWith('Reference');
      const name = isOfReference ? `Reference${reason}` : reason;
      const counts = blockedCounts.get(name) ?? new Map<string, number>();
      blockedCounts.set(name, counts.set(controller, count));
      byReason(name)(counts.values().reduce((sum, one) => sum + one, 0));
    },
    latency: latency.of({}),
    written: (cluster, verb, result) => byWrite(`${cluster} ${verb} ${result}`)(),
  };
}

function patchSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'patched' | 'patchFailed' | 'memo' | 'batched' | 'sandboxKilled'> {
  const duration = registry.histogram({
    name: 'endpoint_syncer_patch_duration_seconds',
    help: 'Duration of all patches of one object.',
    buckets: PATCH_BUCKETS,
  });
  const batches = registry.histogram({
    name: 'endpoint_syncer_sandbox_batch_matches',
    help: 'Matches per batch sent to the sandbox.',
    buckets: BATCH_BUCKETS,
  });
  const counter = (
    name: string,
    help: string,
    label: string,
    values: string[],
  ): ((value: string) => Count) => {
    const family = registry.counter({ name: `endpoint_syncer_${name}`, help, labels: [label] });
    return byName(values, (value) => family.of({ [label]: value }));
  };
  const errors = counter('patch_errors_total', 'Failed patches by kind of error.', 'reason', PATCH_ERRORS);
  const kills = counter(
    'sandbox_kills_total',
    'Sandbox processes that were killed or exited, by reason.',
    'reason',
    KILLS,
  );
  const memo = counter('memo_lookups_total', 'Lookups in the cache of expression results.', 'result', [
    'hit',
    'miss',
  ]);
  const [hit, miss] = [memo('hit'), memo('miss')];
  return {
    patched: duration.of({}),
    patchFailed: (reason) => errors(reason)(),
    memo(hits, misses) {
      hit(hits);
      miss(misses);
    },
    batched: batches.of({}),
    sandboxKilled: (reason) => kills(reason)(),
  };
}

function outcomeSeries(registry: SeriesRegistry): Pick<SyncSeries, 'event'> {
  const events = registry.counter({
    name: 'endpoint_syncer_events_total',
    help: 'Kubernetes Events by result.',
    labels: ['result'],
  });
  const event = byName(['sent', 'dropped', 'error'], (result) => events.of({ result }));
  return { event: (result) => event(result)() };
}

function configurationSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'reloaded' | 'configurationInUse' | 'configurationApplied'> {
  const reloads = registry.counter({
    name: 'endpoint_syncer_config_reloads_total',
    help: 'Reloads of the configuration by result.',
    labels: ['result'],
  });
  const applied = registry
    .gauge({
      name: 'endpoint_syncer_config_last_reload_successful',
      help: '1 while the configuration of the files is in use, 0 while it is invalid, was not applied, or needs a restart.',
    })
    .of({});
  const since = registry.gauge({
    name: 'endpoint_syncer_config_last_reload_success_timestamp_seconds',
    help: 'When the configuration in use was applied, seconds since the epoch; the label is its hash.',
    labels: ['hash'],
  });
  const reload = byName(['ok', 'error'], (result) => reloads.of({ result }));
  let inUse: string | undefined;
  return {
    reloaded: (result) => reload(result)(),
    configurationInUse(hash, sinceSeconds) {
      if (inUse !== undefined) since.remove({ hash: inUse });
      inUse = hash;
      since.of({ hash })(sinceSeconds);
    },
    configurationApplied: (isApplied) => applied(isApplied ? 1 : 0),
  };
}

/** Handles by name. Those of `names` are created immediately, others on first use. */
function byName<T extends Count | Observe>(
  names: readonly string[],
  make: (name: string) => T,
): (name: string) => T {
  const known = new Map(names.map((name) => [name, make(name)]));
  return (name) => {
    const value = known.get(name) ?? make(name);
    known.set(name, value);
    return value;
  };
}
