/** Runs programs in this process, without any protection: the expressions of these tests are our own. */

import { runInThisContext } from 'node:vm';
import type { JsonValue } from '../../../src/base/json.ts';
import type {
  EvaluateError,
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  Program,
  VclusterContext,
} from '../../../src/expressions/types.ts';
import { virtualToHostDNS } from '../translate/dns.ts';
import { SINGLE, translators } from '../translate/setup.ts';

type Compiled = (
  value: JsonValue | undefined,
  valueExists: boolean,
  context: unknown,
) => JsonValue | undefined;

export class TrustedEvaluator implements Evaluator {
  readonly requests: EvaluateRequest[] = [];
  /** The requests that were under way together. */
  readonly turns: number[] = [];
  readonly #programs = new Map<number, Compiled>();
  readonly #vcluster: VclusterContext;
  readonly #isSynchronous: boolean;
  #waiting: (() => void)[] = [];

  constructor(
    programs: readonly Program[],
    vcluster: VclusterContext = { name: 'vc', namespace: 'ns', config: {} },
    mode: 'immediately' | 'later' = 'later',
  ) {
    this.#vcluster = vcluster;
    this.#isSynchronous = mode === 'immediately';
    const { names } = translators(SINGLE, { vcluster: vcluster.name, hostNamespace: vcluster.namespace });
    const dns = (text: string): string => virtualToHostDNS(text, names);
    for (const { id, source } of programs) {
      const build = runInThisContext(`(virtualToHostDNS) => ${source}`) as (
        dnsFunction: typeof dns,
      ) => Compiled;
      this.#programs.set(id, build(dns));
    }
  }

  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse> {
    this.requests.push(request);
    const response = this.#run(request);
    if (this.#isSynchronous) return response;
    if (this.#waiting.length === 0) setImmediate(() => this.#flush());
    return new Promise((resolve) => this.#waiting.push(() => resolve(response)));
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.turns.push(waiting.length);
    for (const answer of waiting) answer();
  }

  #run({ program, context, values, paths }: EvaluateRequest): EvaluateResponse {
    const compiled = this.#programs.get(program);
    if (compiled === undefined) throw new Error(`no program ${program}`);
    const errors = new Map<number, EvaluateError>();
    const results = values.map((value, at) => {
      const path = paths?.[at] ?? '';
      const { hostObject, virtualObject } = context;
      const whole = { vcluster: this.#vcluster, hostObject, virtualObject, path };
      try {
        return compiled(structuredClone(value), value !== undefined, whole);
      } catch (error) {
        errors.set(at, { kind: 'runtime', message: String(error), line: 1, column: 1 });
        return undefined;
      }
    });
    return { values: results, errors: errors.size > 0 ? errors : undefined };
  }
}
