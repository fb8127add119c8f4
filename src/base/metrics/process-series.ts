/** Metrics of the process: requests to API servers, leadership, version, CPU, memory and event loop. */

import type { Count, Observe, SeriesRegistry } from './series.ts';

/** What a transport reports. */
export interface RequestSeries {
  /** `code` is the HTTP status, or `<error>` without a response. */
  requested(method: string, code: string, seconds: number): void;
}

/** Combinations that exist from the start; others appear when they occur. */
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
    help: 'Request latency; a watch counts until it starts.',
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

/** The program, its CPU time and memory, and how long its event loop was held. */
export function processSeries(registry: SeriesRegistry, version: string): void {
  registry
    .gauge({
      name: 'endpoint_syncer_build_info',
      help: 'Always 1; the labels say which version runs.',
      labels: ['version', 'node_version'],
    })
    .of({ version, node_version: process.version })(1);
  eventLoopSeries(registry);
  registry.readCounter({ name: 'process_cpu_seconds_total', help: 'User and system CPU time.' }, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  const set: { memory?: Observe } = {};
  set.memory = registry
    .gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory of this process.' }, () =>
      set.memory?.(process.memoryUsage.rss()),
    )
    .of({});
  const startedSeconds = Date.now() / 1000 - process.uptime();
  registry
    .gauge({ name: 'process_start_time_seconds', help: 'When the process started, seconds since the epoch.' })
    .of({})(startedSeconds);
}

/** As prom-client names them. Of the time since the previous scrape, above the resolution of the measurement. */
function eventLoopSeries(registry: SeriesRegistry): void {
  const { monitorEventLoopDelay } = process.getBuiltinModule('node:perf_hooks');
  const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delay.enable();
  const values = {
    mean: { help: 'Mean', read: () => delay.mean },
    p50: { help: 'Median', read: () => delay.percentile(50) },
    p99: { help: '99th percentile', read: () => delay.percentile(99) },
    // Rendered last, so it begins the next period.
    max: { help: 'Longest', read: () => resetAfter(delay.max, () => delay.reset()) },
  };
  for (const [name, { help, read }] of Object.entries(values)) {
    const series: { set?: Observe } = {};
    const description = {
      name: `nodejs_eventloop_lag_${name}_seconds`,
      help: `${help} delay of the event loop since the previous scrape.`,
    };
    series.set = registry.gauge(description, () => series.set?.(lagSeconds(read()))).of({});
    series.set(0);
  }
}

const LAG_RESOLUTION_MS = 20;

/** NaN before the first measurement. */
function lagSeconds(nanoseconds: number): number {
  return Number.isNaN(nanoseconds) ? 0 : Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1000);
}

function resetAfter(value: number, reset: () => void): number {
  reset();
  return value;
}

function remembered<T>(known: Map<string, T>, key: string, make: () => T): T {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}
