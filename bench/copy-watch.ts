/** A watch of one kind in one host namespace, and promises for the copies that a benchmark waits for. */

import type { KubeObject } from '../src/kube/object.ts';
import type { KindName, TestCluster, WatchEvent } from '../test/scenarios/cluster-client.ts';

/** Maximum number of consecutive watches that end without an event. */
const ENDS_MAX = 100;
const TIMEOUT_MS = 120_000;
/** Per thousand copies, because clusters on a busy machine store only few of them per second. */
const TIMEOUT_PER_THOUSAND_MS = 60_000;

export class CopyWatch implements AsyncDisposable {
  /** Events so far: each is a write to the host. */
  events = 0;
  readonly #markOf: (copy: KubeObject) => string;
  /** By the name of the original. */
  readonly #marks = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #version = '';
  readonly #abort = new AbortController();
  #done: Promise<void> = Promise.resolve();

  private constructor(markOf: (copy: KubeObject) => string) {
    this.#markOf = markOf;
  }

  /** `markOf` distinguishes one state of a copy from the next. */
  static async open(
    host: TestCluster,
    { kind, namespace }: { readonly kind: KindName; readonly namespace: string },
    markOf: (copy: KubeObject) => string,
  ): Promise<CopyWatch> {
    const watch = new CopyWatch(markOf);
    const { resourceVersion } = await host.listAt(kind, namespace);
    watch.#version = resourceVersion;
    watch.#done = watch.#follow(host, kind, namespace);
    return watch;
  }

  /** An API server ends the watch of a slow client; then the watch is resumed. */
  async #follow(host: TestCluster, kind: KindName, namespace: string): Promise<void> {
    const { signal } = this.#abort;
    for (let endsWithoutEvent = 0; !signal.aborted;) {
      const versionBefore = this.#version;
      const options = { resourceVersion: versionBefore, signal };
      const onEvent = ({ type, object }: WatchEvent): void => {
        this.#version = object.metadata.resourceVersion ?? this.#version;
        if (type !== 'BOOKMARK') this.#take(object);
      };
      try {
        await host.watch(kind, namespace, { ...options, onEvent });
      } catch (error) {
        endsWithoutEvent = this.#version === versionBefore ? endsWithoutEvent + 1 : 0;
        if (!signal.aborted && endsWithoutEvent > ENDS_MAX) throw error;
      }
    }
  }

  #take(copy: KubeObject): void {
    this.events += 1;
    const { name, annotations } = copy.metadata;
    const [original, mark] = [annotations?.['vcluster.loft.sh/object-name'] ?? name, this.#markOf(copy)];
    this.#count(this.#marks.get(original), -1);
    this.#count(mark, 1);
    this.#marks.set(original, mark);
    for (const look of this.#waiting) look();
  }

  #count(mark: string | undefined, by: number): void {
    if (mark !== undefined) this.#counts.set(mark, (this.#counts.get(mark) ?? 0) + by);
    if (mark !== undefined && this.#counts.get(mark) === 0) this.#counts.delete(mark);
  }

  /** Resolves with the time at which the copy of this object had that mark. */
  when(name: string, mark: string): Promise<number> {
    return this.#until(() => this.#marks.get(name) === mark, `${name} with ${mark}`);
  }

  /** The next event. */
  whenChanged(): Promise<number> {
    const { events } = this;
    return this.#until(() => this.events > events, 'a copy');
  }

  whenAll(count: number, mark: string): Promise<number> {
    const areAll = (): boolean => (this.#counts.get(mark) ?? 0) === count;
    const timeoutMs = TIMEOUT_MS + (count / 1000) * TIMEOUT_PER_THOUSAND_MS;
    return this.#until(areAll, `${count} copies with ${mark}`, timeoutMs);
  }

  #until(holds: () => boolean, what: string, timeoutMs = TIMEOUT_MS): Promise<number> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`timed out waiting for ${what}`)), timeoutMs);
      const look = (): void => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(performance.now());
      };
      this.#waiting.add(look);
      look();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }
}
