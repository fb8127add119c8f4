/** Expressions that the daemon evaluates itself: a total subset of the language, compiled to closures. */

import type { JsonPrimitive, JsonValue } from '../../base/json.ts';
import type { Budget } from './budget.ts';

/** What an expression of the subset computes with. No functions, and no object of another kind. */
export type LocalValue = JsonPrimitive | undefined | readonly LocalValue[] | LocalObject;

export interface LocalObject {
  readonly [key: string]: LocalValue;
}

/** The objects of `context`; null if there is no such object. */
interface Objects {
  readonly hostObject: LocalValue;
  readonly virtualObject: LocalValue;
}

/** The evaluations on one object: what they share, and the inputs and the state of the one in progress. */
export class Evaluation {
  readonly context: Objects;
  readonly budget: Budget;
  /** Whose matches are evaluated, and how many of them have been. */
  evaluator: LocalEvaluator | undefined = undefined;
  matches = 0;
  value: LocalValue = undefined;
  path = '';
  /** The values of the parameters of arrow functions, by the number of the parameter. */
  readonly slots: LocalValue[] = [];

  constructor(context: Objects, budget: Budget) {
    this.context = context;
    this.budget = budget;
  }
}

/** Evaluates the matches of one program. */
export interface LocalEvaluator {
  readonly readsPath: boolean;
  /** Throws where the sandbox has to evaluate: all matches of the object, so that they have its limits and errors. */
  evaluate(evaluation: Evaluation, value: JsonValue | undefined, path: string): JsonValue | undefined;
  /** All matches of the object have been evaluated. */
  finish(evaluation: Evaluation): void;
}

/** Throws what `decline` throws, or what a built-in throws, which declines as well. */
export type Evaluate = (evaluation: Evaluation) => LocalValue;

/** What is the same for all evaluations of one configuration. */
export interface Constants {
  readonly vcluster: LocalValue;
  /** What knows Kubernetes, passed in. */
  readonly virtualToHostDNS: (dnsName: unknown) => string;
}

export interface BoundExpression {
  readonly evaluate: Evaluate;
  /** Number of nodes of the tree outside of arrow functions: what one evaluation visits at most. */
  readonly nodes: number;
}

/** What became of one expression. */
export type LocalProgram =
  | { readonly kind: 'local'; readonly bind: (constants: Constants) => BoundExpression }
  | {
      readonly kind: 'sandbox';
      /** The first construct that the subset does not have: 0-based characters in the expression. */
      readonly start: number;
      readonly end: number;
    };
