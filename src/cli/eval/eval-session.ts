/** Evaluates expressions one at a time in the sandbox, as the daemon does: front end, limits, child process. */

import { silentLogger } from '../../base/logger.ts';
import { systemClock } from '../../base/clock.ts';
import { canonicalJson, isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { PatchErrorKind } from '../../base/errors.ts';
import { compileExpression } from '../../syncer/sandbox/front-end/compile-expression.ts';
import { createSandbox, type Sandbox } from '../../syncer/sandbox/sandbox.ts';
import type { EvaluateResponse, ObjectContext, VclusterContext } from '../../syncer/sandbox/types.ts';

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

export interface EvalContext {
  readonly vcluster: VclusterContext;
  readonly objects: ObjectContext;
}

export type EvalOutcome =
  | { readonly value: JsonValue }
  | { readonly undefined: true }
  | { readonly error: EvalError };

export interface EvalError {
  readonly kind: PatchErrorKind;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

/** `{vcluster?: {name, namespace, config}, hostObject?, virtualObject?}`; what is missing is empty or null. */
export function readContext(json: JsonObject): EvalContext {
  const vcluster = objectAt(json, 'vcluster') ?? {};
  return {
    vcluster: {
      name: textAt(vcluster, 'name'),
      namespace: textAt(vcluster, 'namespace'),
      config: objectAt(vcluster, 'config') ?? {},
    },
    objects: { hostObject: objectAt(json, 'hostObject'), virtualObject: objectAt(json, 'virtualObject') },
  };
}

/** Keeps a sandbox for each `context.vcluster`, because a sandbox has one for its lifetime. */
export class EvalSession implements AsyncDisposable {
  readonly #sandboxes = new Map<string, Sandbox>();
  #nextId = 0;

  async evaluate({ expression, value, path, context }: EvalInput): Promise<EvalOutcome> {
    const id = this.#nextId++;
    const compiled = compileExpression(expression, id);
    if (!compiled.ok) {
      const { kind, message, line, column } = compiled.problem;
      return { error: { kind, message, line, column } };
    }
    const sandbox = await this.#sandboxFor(context.vcluster);
    sandbox.define(compiled.program);
    const object = { namespace: '', name: String(id) };
    const request = { program: id, object, context: context.objects, values: [value], paths: [path] };
    const response = await new Promise<EvaluateResponse>((resolve) => {
      const known = sandbox.evaluate(request, resolve);
      if (known !== undefined) resolve(known);
    });
    sandbox.forget(id);
    const error = response.errors?.get(0);
    if (error !== undefined) return { error };
    const [result] = response.values;
    return result === undefined ? { undefined: true } : { value: result };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sandbox of this.#sandboxes.values()) await sandbox[Symbol.asyncDispose]();
    this.#sandboxes.clear();
  }

  async #sandboxFor(vcluster: VclusterContext): Promise<Sandbox> {
    const key = canonicalJson({ ...vcluster });
    let sandbox = this.#sandboxes.get(key);
    this.#sandboxes.delete(key);
    const options = { programs: [], vcluster, limits: LIMITS, clock: systemClock, logger: silentLogger };
    sandbox ??= await createSandbox(options);
    // Least recently used first.
    this.#sandboxes.set(key, sandbox);
    for (const [oldest, unused] of this.#sandboxes) {
      if (this.#sandboxes.size <= SANDBOXES_MAX) break;
      this.#sandboxes.delete(oldest);
      await unused[Symbol.asyncDispose]();
    }
    return sandbox;
  }
}

function objectAt(object: JsonObject, key: string): JsonObject | null {
  const value = ownValue(object, key);
  return isJsonObject(value) ? value : null;
}

function textAt(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === 'string' ? value : '';
}
