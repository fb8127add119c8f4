/** What an informer reports: events, how its lists and watches end, how large and how old its cache is. */

import type { Count, SeriesRegistry } from '../../base/metrics/series.ts';
import type { InformerMetrics } from '../../kube/informer/informer.ts';

const TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'] as const;

export function informerSeries(
  registry: SeriesRegistry,
): (cluster: string, resource: string) => InformerMetrics {
  const labels = ['cluster', 'resource'];
  const refreshes = new Map<string, () => void>();
  const ends = registry.counter({
    name: 'endpoint_syncer_watch_restarts_total',
    help: 'How often a list or a watch ended, by phase and reason; complete and ended are orderly ends.',
    labels: [...labels, 'phase', 'reason'],
  });
  const events = registry.counter({
    name: 'endpoint_syncer_watch_events_total',
    help: 'Events of watches by type; ignored: known already, or older than what is known.',
    labels: [...labels, 'type'],
  });
  const objects = registry.gauge(
    { name: 'endpoint_syncer_cache_objects', help: 'Objects in the cache.', labels },
    () => refreshes.forEach((refresh) => refresh()),
  );
  const staleness = registry.gauge({
    name: 'endpoint_syncer_cache_staleness_seconds',
    help: 'Time since the last event or response of the API server.',
    labels,
  });
  const synced = registry.gauge({
    name: 'endpoint_syncer_cache_synced',
    help: '1 once the first list is in the cache.',
    labels,
  });
  return (cluster, resource) => {
    const of = { cluster, resource };
    const byType = new Map<string, Count>(TYPES.map((type) => [type, events.of({ ...of, type })]));
    const byEnd = new Map<string, Count>();
    const countOf = (phase: string, reason: string): Count => {
      const key = `${phase} ${reason}`;
      const count = byEnd.get(key) ?? ends.of({ ...of, phase, reason });
      byEnd.set(key, count);
      return count;
    };
    return {
      expect: (phase, outcome) => void countOf(phase, outcome),
      ended: (phase, outcome) => countOf(phase, outcome)(),
      received: (type) => byType.get(type)?.(),
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
