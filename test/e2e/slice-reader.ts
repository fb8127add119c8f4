/** kube-proxy's own reader of EndpointSlices (`kube/slice-reader`), and what it has routed to since its start. */

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../support/eventually.ts';
import { builtGoProgram } from '../support/go-program.ts';
import { Guardian } from '../support/guardian.ts';

interface Line {
  readonly synced?: true;
  /** NAMESPACE/NAME. */
  readonly service?: string;
  /** IP:PORT, in order. */
  readonly addresses?: readonly string[];
}

export class SliceReader implements AsyncDisposable {
  static #program: string | undefined;
  readonly #guardian = new Guardian();
  readonly #lines: Line[] = [];

  /** Reads the slices of a namespace; resolves when it knows those that are there. */
  static async start(kubeconfigPath: string, namespace: string): Promise<SliceReader> {
    SliceReader.#program ??= builtGoProgram(join(import.meta.dirname, 'kube', 'slice-reader'));
    const reader = new SliceReader();
    const child = reader.#guardian.spawn(SliceReader.#program, [kubeconfigPath, namespace], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    if (child.stdout === null) throw new Error('the output of the reader is a pipe');
    createInterface({ input: child.stdout }).on('line', (line) => {
      reader.#lines.push(JSON.parse(line) as Line); // printed by our own program
    });
    await eventually(
      () => reader.#lines.some(({ synced }) => synced === true),
      (isSynced) => isSynced,
      { what: 'the first slices of the reader' },
    );
    return reader;
  }

  /** Each state of the routes of a Service, the first one first. */
  routesOf(service: readonly [namespace: string, name: string]): readonly (readonly string[])[] {
    const key = service.join('/');
    return this.#lines.flatMap(({ service: of, addresses }) => (of === key && addresses ? [addresses] : []));
  }

  async whenRoutes(service: readonly [string, string], addresses: readonly string[]): Promise<void> {
    await eventually(
      () => this.routesOf(service).at(-1) ?? [],
      (now) => now.join() === addresses.join(),
      { what: `the routes of ${service.join('/')} to ${addresses.join() || 'nowhere'}` },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guardian[Symbol.asyncDispose]();
  }
}
