/** The sandbox's stand-in: the expressions of the simulation run in this process, late, and sometimes fail as a stopped child does. */

import type { Config } from '../../../src/config/types.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  Program,
} from '../../../src/syncer/sandbox/types.ts';
import { TrustedEvaluator } from '../../syncer/patch/trusted-evaluator.ts';
import type { Faults } from '../world/faults.ts';
import type { ProcessClock } from '../world/sim-clock.ts';

export class SimEvaluator implements Evaluator {
  readonly #trusted: TrustedEvaluator;
  readonly #environment: { readonly process: ProcessClock; readonly faults: Faults };

  constructor(
    programs: readonly Program[],
    config: Config,
    environment: { readonly process: ProcessClock; readonly faults: Faults },
  ) {
    const vcluster = { name: config.name, namespace: config.host.namespace, config: {} };
    this.#trusted = new TrustedEvaluator(programs, vcluster, 'immediately');
    this.#environment = environment;
  }

  evaluate(request: EvaluateRequest, done: (response: EvaluateResponse) => void): undefined {
    const { process, faults } = this.#environment;
    const isStopped = faults.isSandboxStopped();
    process.schedule(faults.latencyMs() / 10, () => {
      if (isStopped) done(stopped(request.values.length));
      else done(this.#trusted.evaluate(request, done) ?? stopped(request.values.length));
    });
    return undefined;
  }
}

function stopped(count: number): EvaluateResponse {
  const error = { kind: 'timeout', message: 'stopped' } as const;
  return {
    values: Array.from({ length: count }, () => undefined),
    errors: new Map(Array.from({ length: count }, (_, at) => [at, error])),
  };
}
