/** Expressions that the daemon evaluates itself: a total subset of the language, compiled to closures. */

import type { JsonPrimitive } from '../../../base/json.ts';
import type { Budget } from './budget.ts';

/** What an expression of the subset computes with. No functions, and no object of another kind. */
export type LocalValue = JsonPrimitive | undefined | readonly LocalValue[] | LocalObject;

export interface LocalObject {
  readonly [key: string]: LocalValue;
}

/** The inputs of one evaluation, and its state. */
export interface Evaluation {
  readonly value: LocalValue;
  readonly valueExists: boolean;
  readonly path: string;
  readonly hostObject: LocalValue;
  readonly virtualObject: LocalValue;
  readonly vcluster: LocalValue;
  readonly budget: Budget;
  /** What knows Kubernetes, passed in. */
  readonly virtualToHostDNS: (dnsName: unknown) => string;
  /** The values of the parameters of arrow functions, by the number of the parameter. */
  readonly slots: LocalValue[];
}

/** Throws what `decline` throws, or what a built-in throws, which declines as well. */
export type Evaluate = (evaluation: Evaluation) => LocalValue;

/** What became of one expression. */
export type LocalProgram =
  | {
      readonly kind: 'local';
      readonly evaluate: Evaluate;
      /** Number of nodes of the tree outside of arrow functions: what one evaluation visits at most. */
      readonly nodes: number;
    }
  | {
      readonly kind: 'sandbox';
      /** The first construct that the subset does not have. */
      readonly construct: string;
      /** 0-based character in the expression. */
      readonly offset: number;
    };
