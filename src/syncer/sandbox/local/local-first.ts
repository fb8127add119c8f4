/** Evaluates in this process what ends there with certainty, and leaves everything else to the sandbox, whose results are the only semantics. */

import type { JsonValue } from '../../../base/json.ts';
import { createVirtualToHostDNS } from '../guest/globals.ts';
import type { NamingRules } from '../protocol.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Program,
  ProgramId,
  Sandbox,
  VclusterContext,
} from '../types.ts';
import { Budget } from './budget.ts';
import type { Evaluation, LocalProgram, LocalValue } from './types.ts';
import { acceptInput, acceptInputs, toResult } from './values.ts';

export interface LocalOptions {
  readonly programs: readonly Program[];
  readonly vcluster: VclusterContext;
  readonly names: NamingRules;
  /** Matches that were evaluated in one place. */
  readonly evaluated?: ((place: 'daemon' | 'sandbox', matches: number) => void) | undefined;
}

interface Entry {
  readonly program: Program;
  readonly local: Extract<LocalProgram, { kind: 'local' }>;
}

export class LocalFirst implements Sandbox {
  readonly #sandbox: Sandbox;
  readonly #options: LocalOptions;
  readonly #vcluster: LocalValue;
  readonly #virtualToHostDNS: Evaluation['virtualToHostDNS'];
  readonly #entries = new Map<ProgramId, Entry>();

  constructor(sandbox: Sandbox, options: LocalOptions) {
    const { name, namespace, config } = options.vcluster;
    this.#sandbox = sandbox;
    this.#options = options;
    this.#vcluster = { name, namespace, config };
    this.#virtualToHostDNS = createVirtualToHostDNS(options.names);
    for (const program of options.programs) this.#add(program);
  }

  get pids(): readonly number[] {
    return this.#sandbox.pids;
  }

  define(program: Program): void {
    this.#sandbox.define(program);
    this.#add(program);
  }

  forget(id: ProgramId): void {
    this.#entries.delete(id);
    this.#sandbox.forget(id);
  }

  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse> {
    const entry = this.#entries.get(request.program);
    const response = entry && this.#evaluateHere(entry, request);
    this.#options.evaluated?.(response === undefined ? 'sandbox' : 'daemon', request.values.length);
    return response ?? this.#sandbox.evaluate(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#entries.clear();
    await this.#sandbox[Symbol.asyncDispose]();
  }

  #add(program: Program): void {
    const { local } = program;
    this.#entries.delete(program.id);
    if (local.kind === 'sandbox' || !this.#acceptsConfiguration(program)) return;
    this.#entries.set(program.id, { program, local });
  }

  /** Once: it is the same for all requests. */
  #acceptsConfiguration({ reads }: Program): boolean {
    const budget = new Budget();
    budget.begin();
    return attempt(() => acceptInputs(this.#vcluster, reads.vcluster, budget));
  }

  /** Undefined: the sandbox has to evaluate it, all matches of it, so that the object has the limits and the errors of the sandbox. */
  #evaluateHere(
    { program: { reads }, local }: Entry,
    request: EvaluateRequest,
  ): EvaluateResponse | undefined {
    const { context, values, paths } = request;
    const { budget = new Budget() } = request;
    const results: (JsonValue | undefined)[] = [];
    const isComplete = attempt(() => {
      budget.begin();
      acceptInputs(context.hostObject, reads.hostObject, budget);
      acceptInputs(context.virtualObject, reads.virtualObject, budget);
      // One for all matches: an object for each would cost as much as the evaluation.
      const evaluation = {
        value: undefined as LocalValue,
        valueExists: false,
        path: '',
        hostObject: context.hostObject,
        virtualObject: context.virtualObject,
        vcluster: this.#vcluster,
        budget,
        virtualToHostDNS: this.#virtualToHostDNS,
        slots: [],
      };
      for (let at = 0; at < values.length; at++) {
        const value = reads.value ? values[at] : undefined;
        evaluation.value = value;
        evaluation.valueExists = value !== undefined;
        evaluation.path = (reads.path ? paths?.[at] : undefined) ?? '';
        budget.begin();
        budget.spend(local.nodes);
        budget.read(evaluation.path.length);
        if (value !== undefined) acceptInput(value, budget);
        results.push(toResult(local.evaluate(evaluation), budget));
      }
    });
    return isComplete ? { values: results, errors: undefined } : undefined;
  }
}

/** False: it was declined, or something threw, which it does in the sandbox as well, with a message and a place. */
function attempt(evaluation: () => void): boolean {
  try {
    evaluation();
    return true;
  } catch {
    return false;
  }
}
