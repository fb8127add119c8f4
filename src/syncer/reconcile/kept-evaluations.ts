/** The evaluator of the reconciles of one kind. None of them waits for the throttled process, which may take minutes, nor for the main one while it is busy with
 * expressions that take long: the reconcile is postponed, and the result is kept for the next one of the key. Otherwise they wait for the main process,
 * so that those of one moment form a batch. */

import { Postponed } from '../../base/errors.ts';
import { keyOf, type ObjectKey } from '../../kube/object.ts';
import { inputsOf } from '../../expressions/program-entry.ts';
import type { LocalEvaluator } from '../../expressions/local/types.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  Program,
  ProgramId,
} from '../../expressions/types.ts';

interface KeptEvaluation {
  readonly program: ProgramId;
  /** Undefined: they cannot be compared, so it is evaluated again. */
  readonly inputs: string | undefined;
  /** Undefined: it still waits. */
  response: EvaluateResponse | undefined;
  until: Promise<void>;
  withdraw(): void;
  /** By the reconcile in progress, or the last one. */
  isRequested: boolean;
}

export class KeptEvaluations implements Evaluator {
  readonly #evaluator: Evaluator;
  readonly #programs: ReadonlyMap<ProgramId, Program>;
  readonly #kept = new Map<ObjectKey, Set<KeptEvaluation>>();

  constructor(evaluator: Evaluator, programs: readonly Program[]) {
    this.#evaluator = evaluator;
    this.#programs = new Map(programs.map((program) => [program.id, program]));
  }

  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse> {
    const kept = this.#find(request);
    if (kept !== undefined) {
      kept.isRequested = true;
      if (kept.response === undefined) throw postponed(kept);
      return kept.response;
    }
    const { promise: isPostponed, resolve } = Promise.withResolvers<void>();
    let withdraw: () => void;
    const postpone = (again: () => void): void => {
      withdraw = again;
      resolve();
    };
    const response = this.#evaluator.evaluate({ ...request, postpone });
    if (!(response instanceof Promise)) return response;
    const postponing = isPostponed.then(() => this.#keep(request, response, () => withdraw()));
    return Promise.race([response, postponing]);
  }

  local(program: ProgramId): LocalEvaluator | undefined {
    return this.#evaluator.local?.(program);
  }

  /** A reconcile of the key has ended: what it did not request is outdated, and without a postponement, everything is. */
  reconciled(key: ObjectKey, isPostponed: boolean): void {
    const all = this.#kept.get(key);
    if (all === undefined) return;
    for (const kept of all) {
      if (isPostponed && kept.isRequested) {
        kept.isRequested = false;
        continue;
      }
      all.delete(kept);
      kept.withdraw();
    }
    if (all.size === 0) this.#kept.delete(key);
  }

  #find(request: EvaluateRequest): KeptEvaluation | undefined {
    if (this.#kept.size === 0) return undefined;
    const all = this.#kept.get(keyOf(request.object));
    if (all === undefined) return undefined;
    const inputs = this.#inputsOf(request);
    if (inputs === undefined) return undefined;
    return [...all].find((kept) => kept.program === request.program && kept.inputs === inputs);
  }

  #keep(request: EvaluateRequest, evaluating: Promise<EvaluateResponse>, withdraw: () => void): never {
    const key = keyOf(request.object);
    const { program } = request;
    const kept: KeptEvaluation = {
      program,
      inputs: this.#inputsOf(request),
      response: undefined,
      until: evaluating.then((response) => {
        kept.response = response;
      }),
      withdraw,
      isRequested: true,
    };
    const all = this.#kept.get(key) ?? new Set();
    this.#kept.set(key, all.add(kept));
    throw postponed(kept);
  }

  #inputsOf(request: EvaluateRequest): string | undefined {
    const program = this.#programs.get(request.program);
    return program && inputsOf(program, request);
  }
}

function postponed({ until }: KeptEvaluation): Postponed {
  return new Postponed('an expression waits for the throttled sandbox process', until);
}
