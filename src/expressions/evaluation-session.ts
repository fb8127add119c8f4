/** Single evaluations as the daemon does them: front end, its own evaluator, limits, child process. For `eval`. */

import { systemClock } from '../base/clock.ts';
import { placeOf } from '../base/excerpt.ts';
import { canonicalJson, type JsonValue } from '../base/json.ts';
import { silentLogger } from '../base/logger.ts';
import { compileExpression } from './front-end/compile-expression.ts';
import { IN_DAEMON, inSandbox, type Place } from './places.ts';
import { createSandbox } from './sandbox.ts';
import type { EvaluateError, ObjectContext, Program, Sandbox, VclusterContext } from './types.ts';

/** The defaults of the configuration, without a cache of results, since every expression is evaluated once. */
const LIMITS = {
  expressionTimeoutMs: 100,
  batchTimeoutMs: 1000,
  memoryBytes: 128 * 1024 * 1024,
  memoBytes: 0,
};
/** Each has a process of its own. */
const SANDBOXES_MAX = 2;

export interface EvalInput {
  readonly expression: string;
  /** Undefined: the path does not exist. */
  readonly value: JsonValue | undefined;
  readonly path: string;
  readonly context: EvalContext;
}

interface EvalContext {
  readonly vcluster: VclusterContext;
  readonly objects: ObjectContext;
}

/** Where it was evaluated, if the caller asked. `declined`: what only the sandbox evaluates; undefined: the daemon declined the inputs. */
interface Evaluated {
  readonly place: Place;
  /** Lines and columns are 1-based. */
  readonly declined?: { readonly construct: string; readonly line: number; readonly column: number };
}

/** The place in words. */
export function describePlace({ place, declined }: Evaluated): string {
  if (place === 'daemon') return IN_DAEMON;
  if (declined === undefined) return inSandbox('it on these inputs');
  const { construct, line, column } = declined;
  return `${inSandbox(construct)} (line ${line}, column ${column})`;
}

export type EvalOutcome = (
  | { readonly value: JsonValue }
  | { readonly undefined: true }
  | { readonly error: EvalError }
) &
  ({} | Evaluated);

/** JSON leaves out what is undefined. */
interface EvalError extends Pick<EvaluateError, 'kind' | 'message'> {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** Keeps a sandbox for each `context.vcluster`, because a sandbox has one for its lifetime. */
export class EvalSession implements AsyncDisposable {
  readonly #sandboxes = new Map<string, Sandbox>();
  readonly #showsPlace: boolean;
  #nextId = 0;
  /** Of the last evaluation. */
  #place: Place = 'sandbox';

  constructor(showsPlace: boolean) {
    this.#showsPlace = showsPlace;
  }

  async evaluate({ expression, value, path, context }: EvalInput): Promise<EvalOutcome> {
    const id = this.#nextId++;
    const compiled = compileExpression(expression, id);
    if (!compiled.ok) return failed(compiled.problem);
    const sandbox = await this.#sandboxFor(context.vcluster);
    sandbox.define(compiled.program);
    const object = { namespace: '', name: String(id) };
    const request = { program: id, object, context: context.objects, values: [value], paths: [path] };
    const response = await sandbox.evaluate(request);
    sandbox.forget(id);
    const place = this.#showsPlace ? this.#evaluated(compiled.program) : {};
    const error = response.errors?.get(0);
    if (error !== undefined) return { ...failed(error), ...place };
    const [result] = response.values;
    return result === undefined ? { undefined: true, ...place } : { value: result, ...place };
  }

  #evaluated({ expression, local }: Program): Evaluated {
    if (local.kind === 'local') return { place: this.#place };
    const { line, column } = placeOf(expression, local.start);
    const declined = { construct: expression.slice(local.start, local.end), line, column };
    return { place: this.#place, declined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sandbox of this.#sandboxes.values()) await sandbox[Symbol.asyncDispose]();
    this.#sandboxes.clear();
  }

  async #sandboxFor(vcluster: VclusterContext): Promise<Sandbox> {
    const key = canonicalJson({ ...vcluster });
    let sandbox = this.#sandboxes.get(key);
    this.#sandboxes.delete(key);
    sandbox ??= await createSandbox({
      programs: [],
      vcluster,
      limits: LIMITS,
      localEvaluation: true,
      clock: systemClock,
      logger: silentLogger,
      metrics: {
        memo() {},
        batched() {},
        sandboxKilled() {},
        evaluated: (place) => {
          this.#place = place;
        },
      },
    });
    this.#sandboxes.set(key, sandbox);
    for (const [oldest, unused] of this.#sandboxes) {
      if (this.#sandboxes.size <= SANDBOXES_MAX) break;
      this.#sandboxes.delete(oldest);
      await unused[Symbol.asyncDispose]();
    }
    return sandbox;
  }
}

function failed({ kind, message, line, column }: EvalError): EvalOutcome {
  return { error: { kind, message, line, column } };
}
