/** The daemon's evaluator without a sandbox behind it. */

import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { namingRules } from '../../../src/syncer/translate/naming-rules.ts';
import { LocalFirst } from '../../../src/expressions/local/local-first.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Program,
  VclusterContext,
  Sandbox,
} from '../../../src/expressions/types.ts';
import type { Outcome } from '../test-sandbox.ts';

const DECLINED: EvaluateResponse = { values: [], errors: new Map() };

const NO_SANDBOX: Sandbox = {
  define: () => undefined,
  forget: () => undefined,
  pids: [],
  evaluate: () => DECLINED,
  [Symbol.asyncDispose]: async () => undefined,
};

export interface Local {
  readonly program: Program;
  /** Undefined: declined. */
  evaluate(request: Omit<EvaluateRequest, 'program' | 'object'>): EvaluateResponse | undefined;
}

export function openLocal(program: Program, vcluster: VclusterContext): Local {
  const names = namingRules(vcluster, { kind: 'single' });
  const evaluator = new LocalFirst(NO_SANDBOX, { programs: [program], vcluster, names });
  return {
    program,
    evaluate(request) {
      const object = { namespace: '', name: '' };
      const response = evaluator.evaluate({ ...request, program: program.id, object });
      if (response instanceof Promise) throw new Error('a local evaluation does not wait');
      return response === DECLINED ? undefined : response;
    },
  };
}

/** Of one value, as a reconcile of its own. Undefined: declined. */
export function localOutcome(
  local: Local,
  value: JsonValue | undefined,
  objects: { readonly hostObject: JsonObject | null; readonly virtualObject: JsonObject | null },
  path: string,
): Outcome | undefined {
  const response = local.evaluate({ context: { ...objects }, values: [value], paths: [path] });
  if (response === undefined) return undefined;
  if (response.errors !== undefined) throw new Error('a local evaluation has no errors');
  const [result] = response.values;
  return result === undefined ? { undefined: true } : { value: result };
}
