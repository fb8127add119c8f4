/** The sandbox's stand-in: the expressions of the simulation run in this process, late, and sometimes fail as a stopped child does. */

import type { SandboxOptions } from '../../../src/expressions/sandbox.ts';
import type { EvaluateRequest, EvaluateResponse, Sandbox } from '../../../src/expressions/types.ts';
import { TrustedEvaluator } from '../../syncer/patch/trusted-evaluator.ts';
import type { Faults, SandboxFault } from '../world/faults.ts';
import type { ProcessClock } from '../world/process-clock.ts';

interface SimEvaluatorEnvironment {
  readonly process: ProcessClock;
  readonly faults: Faults;
}

export class SimEvaluator implements Sandbox {
  readonly pids: readonly number[] = [];
  readonly #trusted: TrustedEvaluator;
  readonly #environment: SimEvaluatorEnvironment;

  constructor({ programs, vcluster }: SandboxOptions, environment: SimEvaluatorEnvironment) {
    this.#trusted = new TrustedEvaluator(programs, vcluster, 'immediately');
    this.#environment = environment;
  }

  evaluate(request: EvaluateRequest): Promise<EvaluateResponse> {
    const { process, faults } = this.#environment;
    const fault = faults.sandboxFault();
    const delayMs = fault?.delayMs ?? faults.latencyMs() / 10;
    return new Promise((resolve) =>
      process.schedule(delayMs, () =>
        resolve(
          fault === undefined ? this.#trusted.evaluate(request) : stopped(request.values.length, fault),
        ),
      ),
    );
  }

  define(): void {
    throw new Error('a generation has all its programs from the start');
  }

  forget(): void {}

  async [Symbol.asyncDispose](): Promise<void> {}
}

function stopped(count: number, { kind, retryAfterMs }: SandboxFault): EvaluateResponse {
  const error = { kind, message: 'stopped', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return {
    values: Array.from({ length: count }, () => undefined),
    errors: new Map(Array.from({ length: count }, (_, at) => [at, error])),
  };
}
