/** What the demo shows of the daemon: one line for each sync, and how long the last sync of each object took. */

import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { LogFields, Logger } from '../../base/logger.ts';
import type { DemoSample } from './demo-samples.ts';

export interface Activity {
  /** Milliseconds from event to write of the last sync of this key; undefined before its first sync. */
  latencyMs(key: string): number | undefined;
}

const SIDES: Readonly<Record<string, string>> = {
  created: 'host      created',
  updated: 'host      updated',
  rewritten: 'host      rewritten',
  deleted: 'host      deleted',
};

/** One sync, or one problem, of one object. */
export interface ActivityEntry {
  /** `namespace/name` of the virtual object; a reference has its kind before it. */
  readonly key: string;
  readonly what: string;
  /** Undefined for a problem. */
  readonly latencyMs: number | undefined;
  readonly problem: boolean;
}

/** Prints each sync as one line, and every problem with its reason. */
export class ActivityLogger implements Logger, Activity {
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

  latencyMs(key: string): number | undefined {
    return this.#latencies.get(key);
  }

  debug(): void {}

  info(fields: LogFields, message: string): void {
    if (message !== 'synced') {
      if (message === 'configuration reloaded') this.#show?.(`${time()}  configuration reloaded`);
      return;
    }
    const [key, latencyMs] = [subjectOf(fields), Number(fields['latencyMs'])];
    this.#latencies.set(key, latencyMs);
    const didFlowBack = fields['reason'] === 'changed on the host';
    const what = didFlowBack
      ? 'virtual   updated'
      : (SIDES[String(fields['outcome'])] ?? String(fields['outcome']));
    this.#record({ key, what: what.replace(/ +/, ' '), latencyMs, problem: false });
    this.#show?.(`${time()}  ${key.padEnd(30)}  ${what.padEnd(20)}  ${latencyMs.toFixed(1).padStart(6)} ms`);
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
    const { err, key, error, reason, paths } = fields;
    const why = [err instanceof Error ? err.message : err, error, reason, paths]
      .flat()
      .filter((part) => typeof part === 'string')
      .map((part) => `: ${part}`)
      .join('');
    if (typeof key === 'string')
      this.#record({ key: subjectOf(fields), what: `${message}${why}`, latencyMs: undefined, problem: true });
    process.stderr.write(`${time()}  ${typeof key === 'string' ? `${key}  ` : ''}${message}${why}\n`);
  }
}

/** Endpoints by their key alone, which is the key of their Service too; a reference has its kind in its key. */
function subjectOf({ controller, key }: LogFields): string {
  return controller === 'services' ? `Service ${String(key)}` : String(key);
}

/** The table of `demo --once`: every sample, its copy, and its status. */
export function formatSamples(
  samples: readonly DemoSample[],
  copies: ReadonlyMap<string, KubeObject>,
  activity: Activity,
): string {
  const rows = samples.map(({ endpoints, notSynced }) => {
    const key = objectKey(endpoints);
    const copy = copies.get(key);
    if (copy === undefined) return [key, '-', '-', `not synced: ${notSynced ?? 'no copy on the host'}`];
    return [
      key,
      objectKey(copy),
      addressesOf(copy),
      `synced in ${activity.latencyMs(key)?.toFixed(1) ?? '?'} ms`,
    ];
  });
  const table = [['VIRTUAL', 'HOST', 'ADDRESSES', 'STATUS'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('   '));
  return `${lines.join('\n')}\n`;
}

function addressesOf(copy: KubeObject): string {
  const subsets = Array.isArray(copy['subsets']) ? copy['subsets'] : [];
  const ips = subsets.flatMap((subset) => {
    const { addresses } = subset as { addresses?: { ip: string }[] }; // as the API server stores it
    return addresses?.map(({ ip }) => ip) ?? [];
  });
  return ips.join(',');
}

function time(): string {
  return new Date().toTimeString().slice(0, 8);
}
