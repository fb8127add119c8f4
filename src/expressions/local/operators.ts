/** The operators that the daemon applies, as the language converts their operands. */

import { type Budget, decline } from './budget.ts';
import { numberOf, operand } from './methods.ts';
import type { LocalValue } from './types.ts';

type UnaryOperator = (value: LocalValue, budget: Budget) => LocalValue;
type BinaryOperator = (left: LocalValue, right: LocalValue, budget: Budget) => LocalValue;

export const UNARY_OPERATORS: Readonly<Record<string, UnaryOperator>> = {
  '!': (value) => !value,
  '+': (value, budget) => numberOf(value, budget),
  '-': (value, budget) => -numberOf(value, budget),
  '~': (value, budget) => ~numberOf(value, budget),
  typeof: (value) => typeof value,
  void: () => undefined,
};

/** Of two objects, only the sandbox knows whether they are one: here, parts of the inputs may be shared. */
function isSame(left: LocalValue, right: LocalValue, budget: Budget): boolean {
  const isBothObjects = isReference(left) && isReference(right);
  if (isBothObjects) decline();
  if (typeof left === 'string' && typeof right === 'string' && left.length === right.length)
    budget.read(left.length);
  return left === right;
}

function isEqual(left: LocalValue, right: LocalValue, budget: Budget): boolean {
  const isNothing = (value: LocalValue): boolean => value === undefined || value === null;
  if (isNothing(left) || isNothing(right)) return isNothing(left) && isNothing(right);
  // oxlint-disable-next-line eqeqeq -- the operator of the expression
  return operand(left, budget) == operand(right, budget);
}

function isReference(value: LocalValue): boolean {
  return typeof value === 'object' && value !== null;
}

export function sum(left: LocalValue, right: LocalValue, budget: Budget): LocalValue {
  const a = operand(left, budget);
  const b = operand(right, budget);
  if (typeof a === 'string' || typeof b === 'string') return `${a}${b}`;
  return Number(a) + Number(b);
}

type Comparable = string | number;

/** As the operators convert primitives. */
function compare(of: (left: Comparable, right: Comparable) => boolean): BinaryOperator {
  return (left, right, budget) => {
    const [a, b] = [operand(left, budget), operand(right, budget)];
    return typeof a === 'string' && typeof b === 'string' ? of(a, b) : of(Number(a), Number(b));
  };
}

function arithmetic(of: (left: number, right: number) => number): BinaryOperator {
  return (left, right, budget) => of(numberOf(left, budget), numberOf(right, budget));
}

export const BINARY_OPERATORS: Readonly<Record<string, BinaryOperator>> = {
  '-': arithmetic((left, right) => left - right),
  '*': arithmetic((left, right) => left * right),
  '/': arithmetic((left, right) => left / right),
  '%': arithmetic((left, right) => left % right),
  '&': arithmetic((left, right) => left & right),
  '|': arithmetic((left, right) => left | right),
  '^': arithmetic((left, right) => left ^ right),
  '<<': arithmetic((left, right) => left << right),
  '>>': arithmetic((left, right) => left >> right),
  '>>>': arithmetic((left, right) => left >>> right),
  '===': isSame,
  '!==': (left, right, budget) => !isSame(left, right, budget),
  '==': isEqual,
  '!=': (left, right, budget) => !isEqual(left, right, budget),
  '<': compare((left, right) => left < right),
  '<=': compare((left, right) => left <= right),
  '>': compare((left, right) => left > right),
  '>=': compare((left, right) => left >= right),
};
