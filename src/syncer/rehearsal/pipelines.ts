/** What commands add to a rehearsal: a sandbox for several, and a report of what the patches ran on. */

import { createSandbox, type SandboxOptions } from '../../expressions/sandbox.ts';
import type { Program, Sandbox } from '../../expressions/types.ts';
import type { JsonObject } from '../../base/json.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { createPatchPipeline, type PipelineOptions } from '../patch/pipeline.ts';
import type { Direction, PatchContext, PatchPipeline } from '../patch/types.ts';
import type { Translators } from '../translate/forge.ts';

export class KeptSandbox implements AsyncDisposable {
  #sandbox: Sandbox | undefined;
  #settings = '';
  #programs: readonly Program[] = [];
  /** Added to the ids of the programs: an id is never used twice in one sandbox. */
  #offset = 0;

  /** Stays open until the owner disposes of it, or opens one with other limits or another `context.vcluster`. */
  async open({ programs, ...options }: SandboxOptions): Promise<Sandbox> {
    const { vcluster, names, limits, localEvaluation } = options;
    // Edited patches do not start another process.
    const settings = JSON.stringify({ vcluster, names, limits, localEvaluation }, (key, value: unknown) =>
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

/** The pipeline of one synced kind, as the engine has built it. */
export interface KindPipeline extends Translators {
  readonly kind: SyncedKind;
  readonly options: PipelineOptions;
  readonly pipeline: PatchPipeline;
}

// What the patches of a rehearsal ran on, for a trace of them after it.

export interface Application {
  readonly kind: SyncedKind;
  readonly options: PipelineOptions;
  readonly direction: Direction;
  /** Before the first patch. */
  readonly object: JsonObject;
  readonly context: PatchContext;
}

/** `createPipeline` of a rehearsal; reports each object that is patched. */
export function reportingPipeline(
  report: (application: Application) => void,
): (kind: SyncedKind, options: PipelineOptions) => PatchPipeline {
  return (kind, options) => {
    const pipeline = createPatchPipeline(options);
    return {
      ...pipeline,
      apply: (direction, object, context) => {
        report({ kind, options, direction, object, context });
        return pipeline.apply(direction, object, context);
      },
    };
  };
}
