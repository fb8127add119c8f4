/** One sandbox for rehearsals that follow each other, so that most of them start no process. */

import { createSandbox, type Sandbox, type SandboxOptions } from '../../syncer/sandbox/sandbox.ts';
import type { Program } from '../../syncer/sandbox/types.ts';

export class KeptSandbox implements AsyncDisposable {
  #sandbox: Sandbox | undefined;
  #settings = '';
  #programs: readonly Program[] = [];
  /** Added to the ids of the programs: an id is never used twice in one sandbox. */
  #offset = 0;

  /** Stays open until the owner disposes of it, or opens one with other limits or another `context.vcluster`. */
  async open({ programs, ...options }: SandboxOptions): Promise<Sandbox> {
    const { vcluster, namespaces, limits } = options;
    // Edited patches do not start another process.
    const settings = JSON.stringify({ vcluster, namespaces, limits }, (key, value: unknown) =>
      key === 'patches' ? undefined : value,
    );
    if (this.#sandbox === undefined || settings !== this.#settings) {
      await this.#sandbox?.[Symbol.asyncDispose]();
      this.#sandbox = await createSandbox({ ...options, programs: [] });
      this.#settings = settings;
      this.#programs = [];
    }
    this.#define(this.#sandbox, programs);
    return this.#shared(this.#sandbox);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox?.[Symbol.asyncDispose]();
  }

  /** The next rehearsal runs expressions that had to be stopped, even if they have not been edited. */
  forgetPrograms(): void {
    for (const { id } of this.#programs) this.#sandbox?.forget(id + this.#offset);
    this.#offset += this.#programs.length;
    this.#programs = [];
  }

  #define(sandbox: Sandbox, programs: readonly Program[]): void {
    const sources = (all: readonly Program[]): string => JSON.stringify(all.map(({ source }) => source));
    if (sources(programs) === sources(this.#programs)) return;
    this.forgetPrograms();
    this.#programs = programs;
    for (const program of programs) sandbox.define({ ...program, id: program.id + this.#offset });
  }

  #shared(sandbox: Sandbox): Sandbox {
    const offset = this.#offset;
    return {
      pids: sandbox.pids,
      define: (program) => sandbox.define({ ...program, id: program.id + offset }),
      forget: (id) => sandbox.forget(id + offset),
      evaluate: (request) => sandbox.evaluate({ ...request, program: request.program + offset }),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
}
