/** What concerns the process as a whole: requests to API servers, leadership, CPU and memory. */

import type { Count, Observe, SeriesRegistry } from './series.ts';

/** What a transport reports. */
export interface RequestSeries {
  /** `code` is the HTTP status, or `<error>` when no answer came. */
  requested(method: string, code: string, seconds: number): void;
}

/** Combinations that every run meets; others appear when they happen. */
const EXPECTED: readonly (readonly [method: string, code: string])[] = [
  ['GET', '200'],
  ['POST', '201'],
  ['PUT', '200'],
  ['PATCH', '200'],
  ['DELETE', '200'],
  ['GET', '<error>'],
  ['POST', '<error>'],
  ['PUT', '<error>'],
  ['PATCH', '<error>'],
  ['DELETE', '<error>'],
  ['PUT', '409'],
  ['POST', '409'],
];
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30, 60];

export function requestSeries(registry: SeriesRegistry): (host: string) => RequestSeries {
  const total = registry.counter({
    name: 'rest_client_requests_total',
    help: 'Requests by HTTP status, method and host.',
    labels: ['code', 'method', 'host'],
  });
  const duration = registry.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'How long a request takes; a watch counts until it starts.',
    labels: ['verb', 'host'],
    buckets: BUCKETS,
  });
  return (host) => {
    const counts = new Map<string, Count>();
    const durations = new Map<string, Observe>();
    const countOf = (method: string, code: string): Count =>
      remembered(counts, `${method} ${code}`, () => total.of({ code, method, host }));
    for (const [method, code] of EXPECTED) countOf(method, code);
    for (const verb of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      durations.set(verb, duration.of({ verb, host }));
    }
    return {
      requested(method, code, seconds) {
        countOf(method, code)();
        remembered(durations, method, () => duration.of({ verb: method, host }))(seconds);
      },
    };
  };
}

export function leaderSeries(registry: SeriesRegistry): (lease: string, isLeader: boolean) => void {
  const status = registry.gauge({
    name: 'leader_election_master_status',
    help: '1 while this process holds the lease.',
    labels: ['name'],
  });
  const byLease = new Map<string, Observe>();
  return (name, isLeader) => remembered(byLease, name, () => status.of({ name }))(isLeader ? 1 : 0);
}

/** Only what a dashboard cannot do without: reading these two costs a system call each per scrape. */
export function processSeries(registry: SeriesRegistry): void {
  registry.readCounter({ name: 'process_cpu_seconds_total', help: 'User and system CPU time.' }, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  const set: { memory?: Observe } = {};
  set.memory = registry
    .refreshedGauge({ name: 'process_resident_memory_bytes', help: 'Resident memory of this process.' }, () =>
      set.memory?.(process.memoryUsage.rss()),
    )
    .of({});
  const startedSeconds = Date.now() / 1000 - process.uptime();
  registry
    .gauge({ name: 'process_start_time_seconds', help: 'When the process started, seconds since the epoch.' })
    .of({})(startedSeconds);
}

function remembered<T>(known: Map<string, T>, key: string, make: () => T): T {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}
