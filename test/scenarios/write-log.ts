/** A log of the writes to a cluster: a watch that keeps every event. */

import type { KubeObject } from '../../src/kube/object.ts';
import type { KindName, TestCluster, WatchEvent } from './cluster-client.ts';
import { eventually } from '../support/eventually.ts';

export interface Written {
  readonly type: WatchEvent['type'];
  readonly name: string;
  readonly namespace: string;
  readonly object: KubeObject;
  /** `performance.now()` when the event was received. */
  readonly atMs: number;
}

export class WriteLog implements AsyncDisposable {
  readonly events: Written[] = [];
  readonly #abort = new AbortController();
  #watch: Promise<void> = Promise.resolve();
  /** Everything up to here is known. */
  #resourceVersion = '';
  #failure: unknown;

  /** Records all events after this resolves. `namespace` '' means all namespaces. */
  static async open(cluster: TestCluster, kind: KindName, namespace: string): Promise<WriteLog> {
    const log = new WriteLog();
    log.#resourceVersion = (await cluster.listAt(kind, namespace)).resourceVersion;
    log.#watch = log.#follow(cluster, kind, namespace);
    return log;
  }

  /** A kube-apiserver ends the watch of a client that reads slowly, as on a busy machine: the next one begins where it ended. */
  async #follow(cluster: TestCluster, kind: KindName, namespace: string): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted && this.#failure === undefined) {
      const resourceVersion = this.#resourceVersion;
      const onEvent = (event: WatchEvent): void => this.#keep(event);
      await cluster.watch(kind, namespace, { resourceVersion, signal, onEvent }).catch((error: unknown) => {
        if (!signal.aborted && this.#resourceVersion === resourceVersion) this.#failure = error;
      });
    }
  }

  #keep({ type, object }: WatchEvent): void {
    const { name, namespace = '', resourceVersion = this.#resourceVersion } = object.metadata;
    this.#resourceVersion = resourceVersion;
    if (type === 'BOOKMARK') return;
    this.events.push({ type, name, namespace, object, atMs: performance.now() });
  }

  /** The types of the events on one object, in order. */
  of(name: string): string[] {
    return this.events.filter((event) => event.name === name).map(({ type }) => type);
  }

  /** `TYPE name` of every event whose object's name does not start with one of the prefixes. */
  except(...prefixes: string[]): string[] {
    return this.events
      .filter(({ name }) => !prefixes.some((prefix) => name.startsWith(prefix)))
      .map(({ type, name }) => `${type} ${name}`);
  }

  /** Waits until this log contains such an event, and therefore all events of earlier writes. */
  async until(holds: (written: Written) => boolean): Promise<Written> {
    const found = await eventually(
      () => {
        if (this.#failure !== undefined) throw this.#failure;
        return this.events.find(holds);
      },
      (event) => event !== undefined,
      { what: 'an event in the write log' },
    );
    if (found === undefined) throw new Error('unreachable');
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#watch;
  }
}
