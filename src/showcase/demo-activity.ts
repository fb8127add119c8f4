/** The activity of the daemon as the demo shows it: one line for each sync, and the latency of the last sync of each object. */

import { plainLines, plainText } from '../base/excerpt.ts';
import type { KubeObject } from '../kube/object.ts';
import { SYNCABLE_RESOURCES } from '../syncer/kinds/synced-kinds.ts';
import type { LogFields, Logger } from '../base/logger.ts';
import { STATES, type State } from '../syncer/rehearsal/sync-status.ts';
import { SCHEMA_MODELINE } from '../cli/schema.ts';

/** By the reason of the Event, which has the details. */
const REFUSALS: Readonly<Record<string, string>> = {
  NotManaged: 'the host has an object of that name that is not its copy',
  NameConflict: 'another object has the same host name',
  NamespaceNotMapped: 'its namespace is not mapped',
};

export interface ActivityEntry {
  /** The virtual object, such as `Endpoints shop/db`. */
  readonly id: string;
  /** Why it is not `synced` is in `what`. `unchanged`: both sides were already as they should be. */
  readonly state: State | 'unchanged';
  /** `host updated`, or a reason. */
  readonly what: string;
  /** Undefined where nothing was written. */
  readonly latencyMs: number | undefined;
}

export class ActivityLogger implements Logger {
  readonly #show: ((line: string) => void) | undefined;
  readonly #record: (entry: ActivityEntry) => void;
  readonly #latencies = new Map<string, number>();

  constructor(
    show: ((line: string) => void) | undefined,
    record: (entry: ActivityEntry) => void = () => undefined,
  ) {
    this.#show = show;
    this.#record = record;
  }

  /** Milliseconds from event to write of the last sync of this key; undefined before its first sync. */
  latencyMs(key: string): number | undefined {
    return this.#latencies.get(key);
  }

  trace(): void {
    // States are no activity.
  }

  debug(fields: LogFields, message: string): void {
    if (message === 'synced') this.#synced(fields);
    const { key, outcome, reason } = fields;
    if (message !== 'reconciled' || typeof key !== 'string') return;
    const state = outcome === 'ignored' ? 'skipped' : 'unchanged';
    this.#record({ id: idOf(fields), state, what: String(reason ?? outcome), latencyMs: undefined });
  }

  info(fields: LogFields, message: string): void {
    if (message === 'synced') this.#synced(fields);
    else if (message === 'configuration reloaded') this.#show?.(`${time()}  configuration reloaded`);
  }

  #synced(fields: LogFields): void {
    const [key, latencyMs] = [subjectOf(fields), Number(fields['latencyMs'])];
    this.#latencies.set(key, latencyMs);
    const { reason, outcome } = fields;
    const didFlowBack = reason === 'changed on the host';
    const [side, verb] = [didFlowBack ? 'virtual' : 'host', didFlowBack ? 'updated' : String(outcome)];
    this.#record({ id: idOf(fields), state: 'synced', what: `${side} ${verb}`, latencyMs });
    const [object, what] = [plainText(key).padEnd(30), `${side.padEnd(10)}${verb}`.padEnd(20)];
    this.#show?.(`${time()}  ${object}  ${what}  ${latencyMs.toFixed(1).padStart(6)} ms`);
  }

  warn(fields: LogFields, message: string): void {
    this.#problem(fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#problem(fields, message);
  }

  child(): Logger {
    return this;
  }

  #problem(fields: LogFields, message: string): void {
    const { err, key, error, note, reason, paths } = fields;
    const texts = (...parts: unknown[]): string[] => parts.flat().filter((part) => typeof part === 'string');
    const details = texts(err instanceof Error ? err.message : err, error, note, paths);
    const why = [...details, ...texts(reason)].map((part) => `: ${part}`).join('');
    if (typeof key === 'string') {
      // The state says that it is not synced.
      const cause = details.length > 0 ? details.join(': ') : texts(reason)[0];
      const what = REFUSALS[String(reason)] ?? cause ?? message;
      const state = STATES.find((word) => word === fields['outcome']) ?? 'failed';
      this.#record({ id: idOf(fields), state, what, latencyMs: undefined });
    }
    const subject = typeof key === 'string' ? `${key}  ` : '';
    // A line break may be a tenant's: what follows it is indented, so that it is no line of the demo.
    const text = plainLines(`${subject}${message}${why}`).replaceAll(
      '\n',
      `\n${' '.repeat(time().length)}  `,
    );
    process.stderr.write(`${time()}  ${text}\n`);
  }
}

/** Endpoints by their key alone, which is the key of their Service too; a reference has its kind in its key. */
function subjectOf({ controller, key }: LogFields): string {
  return controller === 'services' ? `Service ${String(key)}` : String(key);
}

/** `Service shop/db`: the key of a reference starts with the version and the kind, others with the namespace. */
function idOf(fields: LogFields): string {
  const subject = subjectOf(fields).replace(/^v1 /, '');
  if (subject.includes(' ')) return subject;
  const resource = SYNCABLE_RESOURCES.find(({ plural }) => plural === fields['controller']);
  return `${resource?.kind ?? 'Endpoints'} ${subject}`;
}

function time(): string {
  return new Date().toTimeString().slice(0, 8);
}

// The demo's configuration with all four patch modes, and sample objects that use them.

const DEMO_NAME = 'demo';
export const DEMO_HOST_NAMESPACE = 'team-demo';
const NAMESPACE = 'shop';
/** The annotation of the sample that the demo changes. */
export const DEMO_OWNER = 'shop.example.com/owner';

export function demoConfig(files: { readonly virtual: string; readonly host: string }): string {
  return `${SCHEMA_MODELINE}# The configuration of the running demo. A change below sync is applied immediately.
sync:
  toHost:
    endpoints:
      enabled: true
      patches:
        # expression and reverseExpression: the host sees "team-payments", the virtual cluster "payments".
        - path: metadata.annotations["${DEMO_OWNER}"]
          expression: '"team-" + value'
          reverseExpression: 'value.startsWith("team-") ? value.slice(5) : value'
        # A wildcard: every address. An expression can read the context.
        - path: subsets[*].addresses[*].hostname
          expression: 'value + "-" + context.vcluster.name'
        # reference: the name of a ConfigMap is translated to its host name, and the ConfigMap is imported.
        - path: metadata.annotations["shop.example.com/settings"]
          reference: {apiVersion: v1, kind: ConfigMap}
        # labels: the value is a label selector; its keys are translated like label keys.
        - path: metadata.annotations["shop.example.com/selector"]
          labels: {}

endpointSyncer:
  name: ${DEMO_NAME}
  services: sync
  virtual: {kubeconfig: ${JSON.stringify(files.virtual)}}
  host: {kubeconfig: ${JSON.stringify(files.host)}, namespace: ${DEMO_HOST_NAMESPACE}}
  http: {bindAddress: "127.0.0.1:0"}
`;
}

interface DemoSample {
  readonly service?: KubeObject;
  readonly endpoints: KubeObject;
  /** Why it is not synced; undefined if it is. */
  readonly notSynced?: string;
}

export const DEMO_SAMPLES: readonly DemoSample[] = [
  {
    service: service('db', {}),
    endpoints: endpoints('db', ['10.20.0.11', '10.20.0.12'], {
      [DEMO_OWNER]: 'payments',
      'shop.example.com/settings': 'db-settings',
      'shop.example.com/selector': 'app=db,release=stable',
    }),
  },
  {
    service: service('legacy-mainframe', {}),
    endpoints: endpoints('legacy-mainframe', ['192.0.2.7'], { [DEMO_OWNER]: 'billing' }),
  },
  {
    service: service('web', { selector: { app: 'web' } }),
    endpoints: endpoints('web', ['10.20.1.5'], {}),
    notSynced: 'its Service has a selector, so the host builds them itself',
  },
];

/** Named by the reference in the first sample, so it is imported into the host. */
export const DEMO_SETTINGS: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'db-settings', namespace: NAMESPACE },
  data: { 'pool-size': '20' },
};

export const DEMO_NAMESPACE: KubeObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAMESPACE },
};

function service(name: string, spec: { selector?: Record<string, string> }): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE },
    spec: { ports: [{ name: 'main', port: 80, targetPort: 8080, protocol: 'TCP' }], ...spec },
  };
}

function endpoints(name: string, ips: readonly string[], annotations: Record<string, string>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, namespace: NAMESPACE, annotations, labels: { app: name } },
    subsets: [
      {
        addresses: ips.map((ip, i) => ({
          ip,
          hostname: `${name}-${i}`,
          targetRef: { kind: 'Pod', name: `${name}-${i}`, namespace: NAMESPACE },
        })),
        ports: [{ name: 'main', port: 8080, protocol: 'TCP' }],
      },
    ],
  };
}
