/** A sandbox for tests, with a promise for each request. */

import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { LogFields, Logger } from '../../src/base/logger.ts';
import {
  compileExpression,
  generateProgram,
  type CompileOutcome,
} from '../../src/expressions/front-end/compile-expression.ts';
import { parseExpression } from '../../src/expressions/front-end/parse.ts';
import { SandboxProcesses } from '../../src/expressions/processes.ts';
import { createSandbox, type SandboxOptions } from '../../src/expressions/sandbox.ts';
import type {
  EvaluateError,
  EvaluateRequest,
  EvaluateResponse,
  ObjectIdentity,
  Program,
  Sandbox,
} from '../../src/expressions/types.ts';

export const MIB = 1024 * 1024;
export const LIMITS = {
  expressionTimeoutMs: 50,
  batchTimeoutMs: 1000,
  memoryBytes: 128 * MIB,
  memoBytes: 0,
};

/** Two of them, as a small fleet has. */
export function sharedProcesses(clock: Clock = systemClock, log: LogLine[] = []): SandboxProcesses {
  const { memoryBytes } = LIMITS;
  return new SandboxProcesses({ clock, logger: recordingLogger(log), memoryBytes, sharedBy: 2 });
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at = (level: string) => (fields: LogFields, message: string) =>
    void lines.push({ level, message, fields });
  const logger: Logger = {
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
}

/** The outcome of one match, in the format of `test/cases`. */
export type Outcome =
  | { value: JsonValue }
  | { undefined: true }
  | { error: EvaluateError['kind']; message: string };

export class TestSandbox implements AsyncDisposable {
  readonly #sandbox: Sandbox;
  readonly log: LogLine[];
  #nextId = 1000;
  #nextObject = 0;

  private constructor(sandbox: Sandbox, log: LogLine[]) {
    this.#sandbox = sandbox;
    this.log = log;
  }

  static async open(options: Partial<SandboxOptions> = {}): Promise<TestSandbox> {
    const log: LogLine[] = [];
    const sandbox = await createSandbox({
      programs: [],
      vcluster: { name: 'vc', namespace: 'ns', config: {} },
      limits: LIMITS,
      clock: systemClock,
      logger: recordingLogger(log),
      ...options,
    });
    return new TestSandbox(sandbox, log);
  }

  get pids(): readonly number[] {
    return this.#sandbox.pids;
  }

  define(expression: string): Program {
    const program = programOf(compileExpression(expression, this.#nextId++));
    this.#sandbox.define(program);
    return program;
  }

  forget({ id }: Program): void {
    this.#sandbox.forget(id);
  }

  /** The response if it is known already. */
  evaluateNow(request: EvaluateRequest): EvaluateResponse | undefined {
    const response = this.#sandbox.evaluate(request);
    return response instanceof Promise ? undefined : response;
  }

  async evaluate(request: EvaluateRequest): Promise<EvaluateResponse> {
    return this.#sandbox.evaluate(request);
  }

  ask(
    program: Program,
    values: readonly (JsonValue | undefined)[],
    objects: {
      hostObject?: JsonObject;
      virtualObject?: JsonObject;
      paths?: readonly string[];
      object?: ObjectIdentity;
      postpone?: EvaluateRequest['postpone'];
    } = {},
  ): Promise<EvaluateResponse> {
    const { hostObject = null, virtualObject = null, paths = values.map((_, i) => `items.${i}`) } = objects;
    const { object = { namespace: 'ns', name: `object-${this.#nextObject++}` } } = objects;
    const context = { hostObject, virtualObject };
    const postpone = objects.postpone && { postpone: objects.postpone };
    return this.evaluate({ program: program.id, object, context, values, paths, ...postpone });
  }

  /** One expression, used once. */
  async run(
    compiled: CompileOutcome | string,
    value: JsonValue | undefined,
    objects: { hostObject?: JsonObject; virtualObject?: JsonObject; path?: string } = {},
  ): Promise<Outcome> {
    const id = this.#nextId++;
    const outcome = typeof compiled === 'string' ? compileExpression(compiled, id) : compiled;
    if (!outcome.ok) return { error: outcome.problem.kind, message: outcome.problem.message };
    const program = { ...outcome.program, id };
    this.#sandbox.define(program);
    const paths = objects.path === undefined ? undefined : [objects.path];
    const response = await this.ask(program, [value], { ...objects, ...(paths && { paths }) });
    this.#sandbox.forget(id);
    return outcomeOf(response, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox[Symbol.asyncDispose]();
  }
}

export function outcomeOf(response: EvaluateResponse, index: number): Outcome {
  const error = response.errors?.get(index);
  if (error !== undefined) return { error: error.kind, message: error.message };
  const value = response.values[index];
  return value === undefined ? { undefined: true } : { value };
}

/** Without the check for what is forbidden: shows that the realm holds alone. */
export function compileUnchecked(expression: string): CompileOutcome {
  const outcome = parseExpression(expression);
  return outcome.ok ? generateProgram(expression, outcome.parsed, 0) : compileExpression(expression, 0);
}

export function programOf(outcome: CompileOutcome): Program {
  if (!outcome.ok) throw new Error(`${outcome.problem.kind}: ${outcome.problem.message}`);
  return outcome.program;
}

/** `kind: message` of an error, `value` otherwise. */
export function textOf(outcome: Outcome): string {
  return 'error' in outcome ? `${outcome.error}: ${outcome.message}` : JSON.stringify(outcome);
}
