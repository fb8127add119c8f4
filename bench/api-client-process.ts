/** The client of the API benchmarks, in a process of its own. */

import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { LoadPhase, LoadResult, Phase, WatchEventsResult } from './api-client.ts';

export class ClientProcess implements AsyncDisposable {
  readonly #child: ChildProcess = fork(join(import.meta.dirname, 'api-client.ts'));

  async load(phase: Omit<LoadPhase, 'kind'>): Promise<LoadResult> {
    return (await this.run({ kind: 'load', ...phase })) as LoadResult; // the result of a load
  }

  run(phase: Phase): Promise<LoadResult | WatchEventsResult | undefined> {
    return new Promise((resolve, reject) => {
      const take = (message: unknown): void => {
        this.#child.off('exit', gone);
        const { result, error } = message as { result?: LoadResult | WatchEventsResult; error?: string }; // our own child
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      };
      const gone = (): void => reject(new Error('the client process ended'));
      this.#child.once('message', take);
      this.#child.once('exit', gone);
      this.#child.send(phase);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }
}
