/** Readers of EndpointSlices made of the packages of kube-proxy and of CoreDNS, and where each has led traffic since its start. */

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../support/eventually.ts';
import { builtGoProgram } from '../support/go-program.ts';
import { Guardian } from '../support/guardian.ts';
import type { World } from '../scenarios/world.ts';

const FOLDERS = {
  'kube-proxy': join(import.meta.dirname, 'kube', 'slice-reader'),
  CoreDNS: join(import.meta.dirname, 'dns-reader'),
} as const;

/** kube-proxy routes to Services that have a cluster IP; CoreDNS answers with the addresses of those that have none. */
export type ReaderName = keyof typeof FOLDERS;

export const READERS = Object.keys(FOLDERS) as readonly ReaderName[]; // of the constant above

interface Line {
  readonly synced?: true;
  /** NAMESPACE/NAME. */
  readonly service?: string;
  /** IP:PORT, in order. */
  readonly addresses?: readonly string[];
}

export class SliceReader implements AsyncDisposable {
  static readonly #programs = new Map<ReaderName, string>();
  readonly #guardian = new Guardian();
  readonly #lines: Line[] = [];

  /** Needs no network when Go has built it before. */
  static build(name: ReaderName): string {
    const program = SliceReader.#programs.get(name) ?? builtGoProgram(FOLDERS[name]);
    SliceReader.#programs.set(name, program);
    return program;
  }

  /** Reads the slices of a namespace; resolves when it knows those that are there. */
  static async start(name: ReaderName, kubeconfigPath: string, namespace: string): Promise<SliceReader> {
    const reader = new SliceReader();
    const child = reader.#guardian.spawn(SliceReader.build(name), [kubeconfigPath, namespace], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    if (child.stdout === null) throw new Error('the output of the reader is a pipe');
    createInterface({ input: child.stdout }).on('line', (line) => {
      reader.#lines.push(JSON.parse(line) as Line); // printed by our own program
    });
    await eventually(
      () => reader.#lines.some(({ synced }) => synced === true),
      (isSynced) => isSynced,
      { what: `the first slices of ${name}` },
    );
    return reader;
  }

  /** Each state of the routes of a Service, the first one first; no two in a row are the same. */
  routesOf(service: readonly [namespace: string, name: string]): readonly (readonly string[])[] {
    const key = service.join('/');
    return this.#lines
      .flatMap(({ service: of, addresses }) => (of === key && addresses ? [addresses] : []))
      .filter((state, index, states) => state.join() !== states[index - 1]?.join());
  }

  /** The states without a route, such as 10.1.0.1:80, from the first one on that had it. */
  statesWithout(service: readonly [string, string], route: string): readonly (readonly string[])[] {
    const states = this.routesOf(service);
    return states
      .slice(states.findIndex((state) => state.includes(route)))
      .filter((state) => !state.includes(route));
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

/** Of the host namespace of a world. */
export function readerOf({ host, hostNamespace }: World, name: ReaderName): Promise<SliceReader> {
  return SliceReader.start(name, host.kubeconfigPath, hostNamespace);
}
