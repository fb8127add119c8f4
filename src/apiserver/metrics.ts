/** The metrics of an API server, with the names and labels of a kube-apiserver. All series exist from the start. */

import type { Clock } from '../base/clock.ts';
import type { Count, Observe, SeriesRegistry } from '../base/metrics/series.ts';
import type { Verb, DefinitionTable } from './objects/resource-definition.ts';
import type { ResourcePath } from './request/request-info.ts';
import type { Store } from './storage/store.ts';

export type AuthenticationResult = 'success' | 'failure' | 'error';

export interface ServedRequest {
  readonly verb: Verb | undefined;
  readonly path: ResourcePath | undefined;
  readonly method: string;
  readonly isDryRun: boolean;
  readonly code: number;
  readonly seconds: number;
}

type LabelledRequest = Pick<ServedRequest, 'verb' | 'path' | 'method' | 'isDryRun'>;

const LABELS = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'dry_run', 'component'];
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

function requestKind(method: string): 'mutating' | 'readOnly' {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? 'readOnly' : 'mutating';
}

export class ApiServerSeries {
  readonly #table: DefinitionTable;
  readonly #inFlight = { mutating: 0, readOnly: 0 };
  readonly #attempts: ReturnType<SeriesRegistry['counter']>;
  readonly #total: ReturnType<SeriesRegistry['counter']>;
  readonly #duration: ReturnType<SeriesRegistry['histogram']>;
  readonly #series = new Map<string, { readonly count: Count; readonly observe: Observe }>();

  constructor(registry: SeriesRegistry, table: DefinitionTable) {
    this.#table = table;
    const gauge = registry.gauge(
      {
        name: 'apiserver_current_inflight_requests',
        help: 'Requests being served, by request kind; watches do not count.',
        labels: ['request_kind'],
      },
      () => {
        setMutating(this.#inFlight.mutating);
        setReadOnly(this.#inFlight.readOnly);
      },
    );
    const setMutating = gauge.of({ request_kind: 'mutating' });
    const setReadOnly = gauge.of({ request_kind: 'readOnly' });
    this.#attempts = registry.counter({
      name: 'authentication_attempts',
      help: 'Authentication attempts by result.',
      labels: ['result'],
    });
    for (const result of ['success', 'failure', 'error']) this.#attempts.of({ result });
    this.#total = registry.counter({
      name: 'apiserver_request_total',
      help: 'Requests by verb, resource, scope, dry run and HTTP status.',
      labels: [...LABELS, 'code'],
    });
    this.#duration = registry.histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Response latency by verb, resource, scope and dry run; the duration of watches is not included.',
      labels: LABELS,
      buckets: BUCKETS,
    });
    for (const { group, version, plural, verbs, isNamespaced } of table.all) {
      for (const verb of verbs) {
        const name = SINGLE.has(verb) ? 'name' : '';
        const namespace = isNamespaced ? 'namespace' : '';
        const path = { group, version, resource: plural, namespace, name, subresource: '' };
        this.#of({ verb, path, method: '', isDryRun: false }, verb === 'create' ? 201 : 200);
      }
    }
  }

  began(method: string): void {
    this.#inFlight[requestKind(method)]++;
  }

  ended(method: string): void {
    this.#inFlight[requestKind(method)]--;
  }

  authenticated(result: AuthenticationResult): void {
    this.#attempts.of({ result })();
  }

  served(request: ServedRequest): void {
    const { path, verb, code, seconds } = request;
    const labelled =
      path && this.#isServed(path) ? request : { ...request, path: undefined, verb: undefined };
    const { count, observe } = this.#of(labelled, code);
    count();
    if (verb !== 'watch') observe(seconds);
  }

  /** Clients choose the URL: only served resources become labels, or the number of series would be unlimited. */
  #isServed({ group, version, resource, subresource }: ResourcePath): boolean {
    const definition = this.#table.find(group, version, resource);
    if (!definition) return false;
    return subresource === '' || definition.subresources.some(({ name }) => name === subresource);
  }

  #of(request: LabelledRequest, code: number): { readonly count: Count; readonly observe: Observe } {
    const key = `${seriesKey(request)} ${code}`;
    const known = this.#series.get(key);
    if (known) return known;
    const labels = labelsOf(request);
    const series = {
      count: this.#total.of({ ...labels, code: String(code) }),
      observe: this.#duration.of(labels),
    };
    this.#series.set(key, series);
    return series;
  }
}

/** Verbs that are about one object. */
const SINGLE: ReadonlySet<Verb> = new Set(['get', 'update', 'patch', 'delete']);

/** A kube-apiserver labels some verbs by their HTTP method. */
const VERBS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'LIST',
  watch: 'WATCH',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETECOLLECTION',
};

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** Identifies a combination of labels without building them, which each request would pay for. */
function seriesKey({ verb, path, method, isDryRun }: LabelledRequest): string {
  const shownVerb = verbLabel(verb, method);
  if (!path) return `${shownVerb} ${isDryRun}`;
  const { group, version, resource, subresource } = path;
  return `${shownVerb} ${isDryRun} ${group}/${version}/${resource}/${subresource} ${scopeOf(path)}`;
}

function labelsOf({ verb, path, method, isDryRun }: LabelledRequest): Record<string, string> {
  return {
    verb: verbLabel(verb, method),
    group: path?.group ?? '',
    version: path?.version ?? '',
    resource: path?.resource ?? '',
    subresource: path?.subresource ?? '',
    scope: scopeOf(path),
    dry_run: isDryRun ? 'All' : '',
    component: 'apiserver',
  };
}

function verbLabel(verb: Verb | undefined, method: string): string {
  if (verb) return VERBS[verb];
  return METHODS.has(method) ? method : 'other';
}

function scopeOf(path: ResourcePath | undefined): string {
  if (!path) return '';
  if (path.name !== '') return 'resource';
  return path.namespace === '' ? 'cluster' : 'namespace';
}

// The latency of the requests to a store.

const OPERATIONS = ['get', 'list', 'create', 'update', 'delete'] as const;

const STORE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The store, whose requests are measured when they are sent through the result. */
export function measuredStore(store: Store, clock: Clock, registry: SeriesRegistry): Store {
  const duration = registry.histogram({
    name: 'endpoint_syncer_store_request_duration_seconds',
    help: 'Latency of requests to the store of the key and token API, by operation.',
    labels: ['operation'],
    buckets: STORE_BUCKETS,
  });
  const observers = new Map<string | symbol, Observe>();
  for (const operation of OPERATIONS) observers.set(operation, duration.of({ operation }));
  return new Proxy(store, {
    get: (_store, name) => {
      const member: unknown = Reflect.get(store, name);
      if (typeof member !== 'function') return member;
      const observe = observers.get(name);
      return (...parameters: unknown[]): unknown => {
        const startedMs = clock.monotonicMs();
        const result: unknown = Reflect.apply(member, store, parameters);
        const ended = (): void => observe?.((clock.monotonicMs() - startedMs) / 1000);
        if (observe !== undefined && result instanceof Promise) void result.then(ended, ended);
        return result;
      };
    },
  });
}
