/** One sandbox for several rehearsals of the same configuration, so that only the first one starts a process. */

import { createSandbox, type Sandbox, type SandboxOptions } from '../../../syncer/sandbox/sandbox.ts';

export class KeptSandbox implements AsyncDisposable {
  #sandbox: Promise<Sandbox> | undefined;

  /** Stays open until the owner disposes of it. */
  async open(options: SandboxOptions): Promise<Sandbox> {
    this.#sandbox ??= createSandbox(options);
    const sandbox = await this.#sandbox;
    return {
      pids: sandbox.pids,
      define: (program) => sandbox.define(program),
      forget: (id) => sandbox.forget(id),
      evaluate: (request, done) => sandbox.evaluate(request, done),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#sandbox)?.[Symbol.asyncDispose]();
  }
}
