/** The series that a daemon serves from its start, and those of a fleet. */

import { fleetSeries } from '../../src/fleet/members.ts';
import { createMetrics } from '../../src/syncer/metrics/metrics.ts';

/** Name → labels; a histogram also has the names of its parts. */
export async function servedSeries(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const metrics = createMetrics({ monotonicMs: () => 0, version: '0.0.0' });
  metrics.queue('endpoints');
  metrics.controller('endpoints', 1);
  metrics.requests('127.0.0.1:6443');
  const informer = metrics.informer('host', 'endpoints');
  informer.watchState(() => ({ objects: 0, stalenessSeconds: 0, isSynced: true }));
  metrics.leads('endpoint-syncer-a', true);
  fleetSeries(metrics.registry, () => []);
  const series = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of (await metrics.text()).matchAll(/^(\w+)(?:\{([^\n]*)\})? /gmu)) {
    const known = series.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/gu)) known.add(label);
    series.set(name, known);
  }
  return series;
}
