/** Evaluates in this process what ends there with certainty, and leaves everything else to the sandbox, whose results are the only semantics. */

import type { JsonValue } from '../../base/json.ts';
import { createVirtualToHostDNS } from '../guest/globals.ts';
import type {
  NamingRules,
  EvaluateRequest,
  EvaluateResponse,
  Program,
  ProgramId,
  ReadSet,
  Sandbox,
  VclusterContext,
} from '../types.ts';
import { Budget } from './budget.ts';
import {
  Evaluation,
  type BoundExpression,
  type Constants,
  type Evaluate,
  type LocalEvaluator,
} from './types.ts';
import { acceptInput, acceptInputs, toResult } from './values.ts';

export interface LocalOptions {
  readonly programs: readonly Program[];
  readonly vcluster: VclusterContext;
  readonly names: NamingRules;
  /** Matches that were evaluated in one place. */
  readonly evaluated?: ((place: 'daemon' | 'sandbox', matches: number) => void) | undefined;
}

export class LocalFirst implements Sandbox {
  readonly #sandbox: Sandbox;
  readonly #evaluated: LocalOptions['evaluated'];
  readonly #constants: Constants;
  readonly #programs = new Map<ProgramId, LocalEvaluator>();

  constructor(sandbox: Sandbox, { programs, vcluster, names, evaluated }: LocalOptions) {
    const { name, namespace, config } = vcluster;
    this.#sandbox = sandbox;
    this.#evaluated = evaluated;
    this.#constants = {
      vcluster: { name, namespace, config },
      virtualToHostDNS: createVirtualToHostDNS(names),
    };
    for (const program of programs) this.#add(program);
  }

  get pids(): readonly number[] {
    return this.#sandbox.pids;
  }

  define(program: Program): void {
    this.#sandbox.define(program);
    this.#add(program);
  }

  forget(id: ProgramId): void {
    this.#programs.delete(id);
    this.#sandbox.forget(id);
  }

  local(id: ProgramId): LocalEvaluator | undefined {
    return this.#programs.get(id);
  }

  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse> {
    const response = request.isDeclined === true ? undefined : this.#evaluateHere(request);
    if (response !== undefined) return response;
    this.#evaluated?.('sandbox', request.values.length);
    return this.#sandbox.evaluate(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#programs.clear();
    await this.#sandbox[Symbol.asyncDispose]();
  }

  #add({ id, local, reads }: Program): void {
    this.#programs.delete(id);
    if (local.kind === 'sandbox' || !this.#acceptsConfiguration(reads)) return;
    const evaluated = (matches: number): void => this.#evaluated?.('daemon', matches);
    this.#programs.set(id, new BoundProgram(reads, local.bind(this.#constants), evaluated));
  }

  /** Once: it is the same for all requests. */
  #acceptsConfiguration({ vcluster }: ReadSet): boolean {
    const budget = new Budget();
    budget.begin();
    try {
      acceptInputs(this.#constants.vcluster, vcluster, budget);
      return true;
    } catch {
      return false;
    }
  }

  /** Undefined: it was declined, or something threw, which it does in the sandbox as well, with a message and a place. */
  #evaluateHere({ program, context, values, paths, budget }: EvaluateRequest): EvaluateResponse | undefined {
    const local = this.#programs.get(program);
    if (local === undefined) return undefined;
    const evaluation = new Evaluation(context, budget ?? new Budget());
    try {
      const results = values.map((value, at) => local.evaluate(evaluation, value, paths?.[at] ?? ''));
      local.finish(evaluation);
      return { values: results, errors: undefined };
    } catch {
      return undefined;
    }
  }
}

class BoundProgram implements LocalEvaluator {
  readonly readsPath: boolean;
  readonly #reads: ReadSet;
  readonly #readsValue: boolean;
  readonly #evaluate: Evaluate;
  readonly #nodes: number;
  readonly #evaluated: (matches: number) => void;

  constructor(reads: ReadSet, expression: BoundExpression, evaluated: (matches: number) => void) {
    this.readsPath = reads.path;
    this.#reads = reads;
    this.#readsValue = reads.value;
    this.#evaluate = expression.evaluate;
    this.#nodes = expression.nodes;
    this.#evaluated = evaluated;
  }

  evaluate(evaluation: Evaluation, value: JsonValue | undefined, path: string): JsonValue | undefined {
    const { budget } = evaluation;
    if (evaluation.evaluator !== this) this.#begin(evaluation);
    evaluation.matches += 1;
    const text = this.#readsValue && typeof value === 'string' ? value : undefined;
    budget.begin(this.#nodes, text?.length);
    if (this.readsPath) {
      budget.read(path.length);
      evaluation.path = path;
    }
    if (this.#readsValue) {
      if (text === undefined && value !== undefined) acceptInput(value, budget);
      evaluation.value = value;
    }
    return toResult(this.#evaluate(evaluation), budget);
  }

  finish(evaluation: Evaluation): void {
    if (evaluation.evaluator === this) this.#evaluated(evaluation.matches);
    evaluation.evaluator = undefined;
  }

  #begin(evaluation: Evaluation): void {
    const { context, budget } = evaluation;
    const { hostObject, virtualObject } = this.#reads;
    budget.begin();
    if (hostObject.length > 0) acceptInputs(context.hostObject, hostObject, budget);
    if (virtualObject.length > 0) acceptInputs(context.virtualObject, virtualObject, budget);
    evaluation.evaluator = this;
    evaluation.matches = 0;
    evaluation.value = undefined;
  }
}
