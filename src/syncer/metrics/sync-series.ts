/** `endpoint_syncer_*`: syncing, patching, the sandbox, the configuration, informers. */

import type { Count, Description, Labels, SeriesRegistry } from '../../base/metrics/series.ts';
import type { InformerMetrics } from '../../kube/informer/informer.ts';

export interface SyncSeries {
  /** Objects of one controller; the series has the sum of those of all kinds. */
  blocked(controller: string, reason: string, count: number): void;
  kindsMissing(count: number): void;
  /** `read` counts those of the configuration in use. */
  pathsNeverMatched(read: () => number): void;
  /** Copies of objects that are gone are not deleted. */
  deletionsHeld(isHeld: boolean): void;
  latency(seconds: number): void;
  written(cluster: string, verb: 'create' | 'update' | 'patch' | 'delete', result: 'ok' | 'error'): void;
  /** One of those with `error` was answered 403. */
  forbidden(cluster: string): void;
  /** All patches of one object, in one direction. */
  patched(seconds: number): void;
  /** One patch failed on one object; `reason` is a `PatchErrorKind`. */
  patchFailed(reason: string): void;
  memo(hits: number, misses: number): void;
  batched(matches: number): void;
  /** The sandbox process was killed by its watchdog, or exited. */
  sandboxKilled(reason: string): void;
  /** Matches for which an expression was evaluated. */
  evaluated(place: 'daemon' | 'sandbox', matches: number): void;
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
  'Forbidden',
  'Contested',
  'Terminating',
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
    ...objectSeries(registry),
    ...writeSeries(registry),
    ...patchPathSeries(registry),
    ...patchSeries(registry),
    ...configurationSeries(registry),
  };
}

function objectSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'blocked' | 'deletionsHeld' | 'event' | 'kindsMissing' | 'latency'> {
  const missing = registry.gauge(
    described(
      'referenced_kinds_missing',
      'Kinds that patches reference and that a cluster does not serve, or of which objects cannot be listed.',
    ),
  );
  const held = registry
    .gauge(
      described(
        'deletions_held',
        '1 while copies of objects that are gone are not deleted, because the virtual cluster seems to be another one.',
      ),
    )
    .of({});
  const blocked = registry.gauge(
    described('blocked_objects', 'Objects that are not synced at the moment, by reason.', 'reason'),
  );
  const events = registry.counter(described('events_total', 'Kubernetes Events by result.', 'result'));
  const latency = registry.histogram({
    ...described(
      'sync_latency_seconds',
      'From the event of a change in one cluster to the end of the write in the other.',
    ),
    buckets: LATENCY_BUCKETS,
  });
  const setBlocked = byLabel(blocked, 'reason', BLOCKED);
  const blockedCounts = new Map<string, Map<string, number>>();
  const event = byLabel(events, 'result', ['sent', 'dropped', 'error']);
  return {
    kindsMissing: missing.of({}),
    deletionsHeld: (isHeld) => held(isHeld ? 1 : 0),
    blocked(controller, reason, count) {
      // Blocked references are counted apart from blocked objects that name them.
      const isOfReference = controller === 'references' && !reason.startsWith('Reference');
      const name = isOfReference ? `Reference${reason}` : reason;
      const counts = blockedCounts.get(name) ?? new Map<string, number>();
      blockedCounts.set(name, counts.set(controller, count));
      setBlocked(name)(counts.values().reduce((sum, one) => sum + one, 0));
    },
    latency: latency.of({}),
    event: (result) => event(result)(),
  };
}

function writeSeries(registry: SeriesRegistry): Pick<SyncSeries, 'forbidden' | 'written'> {
  const writes = registry.counter(
    described('writes_total', 'Writes by cluster, verb and result.', 'cluster', 'verb', 'result'),
  );
  const forbidden = byLabel(
    registry.counter(
      described(
        'writes_forbidden_total',
        'Writes that an API server answered with 403, by cluster.',
        'cluster',
      ),
    ),
    'cluster',
    ['host', 'virtual'],
  );
  const written = Object.fromEntries(
    ['host', 'virtual'].flatMap((cluster) =>
      ['create', 'update', 'patch', 'delete'].map((verb) => [
        `${cluster} ${verb}`,
        byLabel(writes, 'result', ['ok', 'error'], { cluster, verb }),
      ]),
    ),
  );
  return {
    forbidden: (cluster) => forbidden(cluster)(),
    written: (cluster, verb, result) => written[`${cluster} ${verb}`]?.(result)(),
  };
}

function patchPathSeries(registry: SeriesRegistry): Pick<SyncSeries, 'pathsNeverMatched'> {
  let count = (): number => 0;
  const paths = registry
    .gauge(
      described(
        'paths_never_matched',
        'Paths of patches that have matched in no object, since the configuration is in use.',
      ),
      () => paths(count()),
    )
    .of({});
  return { pathsNeverMatched: (read) => void (count = read) };
}

function patchSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'patched' | 'patchFailed' | 'memo' | 'batched' | 'sandboxKilled' | 'evaluated'> {
  const duration = registry.histogram({
    ...described('patch_duration_seconds', 'Duration of all patches of one object.'),
    buckets: PATCH_BUCKETS,
  });
  const batches = registry.histogram({
    ...described('sandbox_batch_matches', 'Matches per batch sent to the sandbox.'),
    buckets: BATCH_BUCKETS,
  });
  const errors = registry.counter(
    described('patch_errors_total', 'Failed patches by kind of error.', 'reason'),
  );
  const kills = registry.counter(
    described('sandbox_kills_total', 'Sandbox processes that were killed or exited, by reason.', 'reason'),
  );
  const lookups = registry.counter(
    described('memo_lookups_total', 'Lookups in the cache of expression results.', 'result'),
  );
  const expressions = registry.counter(
    described('expressions_total', 'Values for which an expression was evaluated, by place.', 'place'),
  );
  const places = {
    daemon: expressions.of({ place: 'daemon' }),
    sandbox: expressions.of({ place: 'sandbox' }),
  };
  const [failed, killed] = [byLabel(errors, 'reason', PATCH_ERRORS), byLabel(kills, 'reason', KILLS)];
  const [hit, miss] = [lookups.of({ result: 'hit' }), lookups.of({ result: 'miss' })];
  return {
    patched: duration.of({}),
    patchFailed: (reason) => failed(reason)(),
    memo(hits, misses) {
      hit(hits);
      miss(misses);
    },
    batched: batches.of({}),
    sandboxKilled: (reason) => killed(reason)(),
    evaluated: (place, matches) => places[place](matches),
  };
}

function configurationSeries(
  registry: SeriesRegistry,
): Pick<SyncSeries, 'reloaded' | 'configurationInUse' | 'configurationApplied'> {
  const reloads = registry.counter(
    described('config_reloads_total', 'Reloads of the configuration by result.', 'result'),
  );
  const applied = registry
    .gauge(
      described(
        'config_last_reload_successful',
        '1 while the configuration of the files is in use, 0 while it is invalid, was not applied, or needs a restart.',
      ),
    )
    .of({});
  const since = registry.gauge(
    described(
      'config_last_reload_success_timestamp_seconds',
      'When the configuration in use was applied, seconds since the epoch; the label is its hash.',
      'hash',
    ),
  );
  const reload = byLabel(reloads, 'result', ['ok', 'error']);
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

const EVENT_TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'];

export function informerSeries(
  registry: SeriesRegistry,
): (cluster: string, resource: string) => InformerMetrics {
  const ofCache = (name: string, help: string, ...labels: string[]): Description =>
    described(name, help, 'cluster', 'resource', ...labels);
  const refreshes = new Map<string, () => void>();
  const ends = registry.counter(
    ofCache(
      'watch_restarts_total',
      'How often a list or a watch ended, by phase and reason; complete and ended are orderly ends.',
      'phase',
      'reason',
    ),
  );
  const events = registry.counter(
    ofCache(
      'watch_events_total',
      'Events of watches by type; ignored: known already, or older than what is known.',
      'type',
    ),
  );
  const objects = registry.gauge(ofCache('cache_objects', 'Objects in the cache.'), () =>
    refreshes.forEach((refresh) => refresh()),
  );
  const staleness = registry.gauge(
    ofCache('cache_staleness_seconds', 'Time since the last event or response of the API server.'),
  );
  const synced = registry.gauge(ofCache('cache_synced', '1 once the first list is in the cache.'));
  return (cluster, resource) => {
    const of = { cluster, resource };
    const received = byLabel(events, 'type', EVENT_TYPES, of);
    const countOf = (phase: string, reason: string): Count => ends.of({ ...of, phase, reason });
    return {
      expect: (phase, outcome) => void countOf(phase, outcome),
      ended: (phase, outcome) => countOf(phase, outcome)(),
      received: (type) => received(type)(),
      ignored: events.of({ ...of, type: 'ignored' }),
      watchState(read) {
        const gauges = { objects: objects.of(of), staleness: staleness.of(of), synced: synced.of(of) };
        const refresh = (): void => {
          const state = read();
          gauges.objects(state.objects);
          gauges.staleness(state.stalenessSeconds);
          gauges.synced(state.isSynced ? 1 : 0);
        };
        refresh();
        const name = `${cluster} ${resource}`;
        refreshes.set(name, refresh);
        return () => {
          if (refreshes.get(name) !== refresh) return;
          refreshes.delete(name);
          for (const gauge of [objects, staleness, synced]) gauge.remove(of);
        };
      },
    };
  };
}

function described(name: string, help: string, ...labels: string[]): Description {
  return { name: `endpoint_syncer_${name}`, help, labels };
}

/** Handles by the value of one label. Those of `values` are created immediately, others on first use. `rest`: the other labels. */
export function byLabel<T>(
  family: { of(labels: Labels): T },
  label: string,
  values: readonly string[],
  rest: Labels = {},
): (value: string) => T {
  const open = (value: string): T => family.of({ ...rest, [label]: value });
  const known = new Map(values.map((value) => [value, open(value)]));
  return (value) => {
    const handle = known.get(value);
    if (handle !== undefined) return handle;
    const opened = open(value);
    known.set(value, opened);
    return opened;
  };
}
