/** Compiles the checked syntax tree to closures, or names the first construct that only the sandbox evaluates. What is compiled ends: there are no loops,
 * no function that calls itself, and no assignment; arrow functions stand only where a method of a list calls them, once for each element. */

import type { ParsedExpression } from '../front-end/parse.ts';
import { identifierName, isNode, staticKey, type SyntaxNode } from '../front-end/syntax-tree.ts';
import { decline, type Budget } from './budget.ts';
import {
  CHANGING_METHODS,
  flattened,
  FUNCTIONS,
  LIST_METHODS,
  NAMESPACES,
  NEW_LIST_METHODS,
  NUMBER_METHODS,
  primitiveOf,
  printed,
  setMember,
  TEXT_METHODS,
} from './methods.ts';
import type { Evaluate, Evaluation, LocalProgram, LocalValue } from './types.ts';
import { isList, isObject, memberOf } from './values.ts';

export function compileLocally({ statements, result }: ParsedExpression): LocalProgram {
  try {
    const [statement] = statements;
    if (statement !== undefined) refuse(statement);
    const compiler = new Compiler();
    const evaluate = compiler.compile(result);
    return { kind: 'local', evaluate, nodes: compiler.nodes };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { kind: 'sandbox', construct: error.node.type, offset: error.node.start };
  }
}

class Refused extends Error {
  override readonly name = 'Refused';
  readonly node: SyntaxNode;

  constructor(node: SyntaxNode) {
    super(node.type);
    this.node = node;
  }
}

function refuse(node: SyntaxNode): never {
  throw new Refused(node);
}

function childOf(node: SyntaxNode, role: string): SyntaxNode {
  const child = node[role];
  return isNode(child) ? child : refuse(node);
}

/** A hole in a list is refused. */
function childrenIn(node: SyntaxNode, role: string): readonly SyntaxNode[] {
  const children: readonly unknown[] = Array.isArray(node[role]) ? node[role] : refuse(node);
  return children.map((child) => (isNode(child) ? child : refuse(node)));
}

/** The rest of a chain such as `a?.b.c` is not evaluated. */
const SHORT = Symbol('short');
type EvaluateChain = (evaluation: Evaluation) => LocalValue | typeof SHORT;
type EvaluateAll = (evaluation: Evaluation) => readonly LocalValue[];
/** Calls an arrow function for one element. */
type Callback = (element: LocalValue, index: number, evaluation: Evaluation) => LocalValue;
type Bind = (value: LocalValue, evaluation: Evaluation) => void;

class Compiler {
  nodes = 0;
  #slots = 0;
  #scope: ReadonlyMap<string, number> = new Map();

  compile(node: SyntaxNode): Evaluate {
    this.nodes += 1;
    switch (node.type) {
      case 'Literal':
        return literal(node);
      case 'TemplateLiteral':
        return this.#template(node);
      case 'Identifier':
        return this.#identifier(node);
      case 'MemberExpression':
      case 'CallExpression':
        return this.#whole(this.#chain(node));
      case 'ChainExpression':
        return this.#whole(this.#chain(childOf(node, 'expression')));
      case 'UnaryExpression':
        return unary(node, this.compile(childOf(node, 'argument')));
      case 'BinaryExpression':
        return binary(node, this.compile(childOf(node, 'left')), this.compile(childOf(node, 'right')));
      case 'LogicalExpression':
        return logical(node, this.compile(childOf(node, 'left')), this.compile(childOf(node, 'right')));
      case 'ConditionalExpression':
        return this.#conditional(node);
      case 'ArrayExpression':
        return this.#all(childrenIn(node, 'elements'));
      case 'ObjectExpression':
        return this.#object(childrenIn(node, 'properties'));
      default:
        return refuse(node);
    }
  }

  #identifier(node: SyntaxNode): Evaluate {
    const name = identifierName(node) ?? '';
    const slot = this.#scope.get(name);
    if (slot !== undefined) return ({ slots }) => slots[slot];
    switch (name) {
      case 'value':
        return ({ value }) => value;
      case 'valueExists':
        return ({ valueExists }) => valueExists;
      case 'undefined':
        return () => undefined;
      default:
        return refuse(node);
    }
  }

  #template(node: SyntaxNode): Evaluate {
    const texts = childrenIn(node, 'quasis').map(({ value }) => {
      const { cooked } = { ...(value as { cooked?: unknown }) }; // the type of a TemplateElement
      return typeof cooked === 'string' ? cooked : refuse(node);
    });
    const parts = childrenIn(node, 'expressions').map((part) => this.compile(part));
    return (evaluation) => {
      const { budget } = evaluation;
      let text = texts[0] ?? '';
      for (let at = 0; at < parts.length; at++) {
        text += printed(parts[at]?.(evaluation), budget) + (texts[at + 1] ?? '');
        budget.read(text.length);
      }
      return text;
    };
  }

  #conditional(node: SyntaxNode): Evaluate {
    const test = this.compile(childOf(node, 'test'));
    const consequent = this.compile(childOf(node, 'consequent'));
    const alternate = this.compile(childOf(node, 'alternate'));
    return (evaluation) => (test(evaluation) ? consequent(evaluation) : alternate(evaluation));
  }

  /** The elements of a list, or the arguments of a call, with those of spread lists. */
  #all(nodes: readonly SyntaxNode[]): EvaluateAll {
    const spreads = nodes.map(({ type }) => type === 'SpreadElement');
    const parts = nodes.map((node, at) =>
      this.compile(spreads[at] === true ? childOf(node, 'argument') : node),
    );
    if (!spreads.includes(true)) return (evaluation) => parts.map((part) => part(evaluation));
    return (evaluation) => {
      const all: LocalValue[] = [];
      for (const [at, part] of parts.entries()) {
        const value = part(evaluation);
        if (spreads[at] !== true) all.push(value);
        else for (const element of iterated(value, evaluation.budget)) all.push(element);
      }
      return all;
    };
  }

  #object(properties: readonly SyntaxNode[]): Evaluate {
    const setters = properties.map((property) => this.#property(property));
    return (evaluation) => {
      const object: Record<string, LocalValue> = {};
      for (const set of setters) set(object, evaluation);
      return object;
    };
  }

  #property(node: SyntaxNode): (object: Record<string, LocalValue>, evaluation: Evaluation) => void {
    if (node.type === 'SpreadElement') {
      const source = this.compile(childOf(node, 'argument'));
      return (object, evaluation) => assign(object, source(evaluation), evaluation.budget);
    }
    if (node.type !== 'Property' || node['kind'] !== 'init' || node['method'] === true) return refuse(node);
    const name = staticKey(node, 'key');
    const key = name === undefined ? this.compile(childOf(node, 'key')) : (): LocalValue => name;
    const value = this.compile(childOf(node, 'value'));
    return (object, evaluation) => setMember(object, key(evaluation), value(evaluation));
  }

  /** A member or a call, perhaps inside of a chain. */
  #chain(node: SyntaxNode): EvaluateChain {
    if (node.type === 'MemberExpression') return this.#member(node);
    if (node.type === 'CallExpression') return this.#call(node);
    return this.compile(node);
  }

  /** Outside of a chain, nothing is short. */
  #whole(chain: EvaluateChain): Evaluate {
    return (evaluation) => {
      const value = chain(evaluation);
      return value === SHORT ? undefined : value;
    };
  }

  #member(node: SyntaxNode): EvaluateChain {
    this.nodes += 1;
    const object = childOf(node, 'object');
    if (identifierName(object) === 'context' && !this.#scope.has('context')) return contextMember(node);
    const receiver = this.#chain(object);
    const isOptional = node['optional'] === true;
    const name = staticKey(node, 'property');
    if (name !== undefined) {
      return (evaluation) => {
        const holder = receiver(evaluation);
        if (holder === SHORT || (isOptional && (holder === undefined || holder === null))) return SHORT;
        return memberOf(holder, name);
      };
    }
    const key = this.compile(childOf(node, 'property'));
    return (evaluation) => {
      const holder = receiver(evaluation);
      if (holder === SHORT || (isOptional && (holder === undefined || holder === null))) return SHORT;
      const computed = key(evaluation);
      if (typeof computed === 'string') evaluation.budget.read(computed.length);
      return memberOf(holder, computed);
    };
  }

  #call(node: SyntaxNode): EvaluateChain {
    this.nodes += 1;
    const callee = childOf(node, 'callee');
    if (node['optional'] === true) return refuse(node);
    const args = childrenIn(node, 'arguments');
    const name = this.#globalName(callee);
    if (name === 'Object.assign') return this.#assign(callee, args);
    if (name !== undefined) {
      const called = FUNCTIONS.get(name) ?? refuse(callee);
      const all = this.#all(args);
      return (evaluation) => called(all(evaluation), evaluation);
    }
    return callee.type === 'MemberExpression' ? this.#method(callee, args) : refuse(callee);
  }

  /** Of a global function or of a member of a global; undefined: the callee is neither. */
  #globalName(callee: SyntaxNode): string | undefined {
    const name = identifierName(callee);
    if (name !== undefined) return this.#scope.has(name) ? refuse(callee) : name;
    if (callee.type !== 'MemberExpression') return undefined;
    const space = identifierName(callee['object']);
    if (space === undefined || this.#scope.has(space) || !NAMESPACES.has(space)) return undefined;
    if (callee['optional'] === true) return refuse(callee);
    return `${space}.${staticKey(callee, 'property') ?? refuse(callee)}`;
  }

  /** Only into a new object. */
  #assign(callee: SyntaxNode, [target, ...sources]: readonly SyntaxNode[]): Evaluate {
    if (target?.type !== 'ObjectExpression') return refuse(callee);
    const start = this.compile(target);
    const all = this.#all(sources);
    return (evaluation) => {
      const object: Record<string, LocalValue> = {};
      for (const source of [start(evaluation), ...all(evaluation)]) assign(object, source, evaluation.budget);
      return object;
    };
  }

  #method(callee: SyntaxNode, args: readonly SyntaxNode[]): EvaluateChain {
    this.nodes += 1;
    const object = childOf(callee, 'object');
    const name = staticKey(callee, 'property') ?? refuse(callee);
    const receiver = this.#chain(object);
    const call = this.#methodCall(name, object, args) ?? refuse(callee);
    const isOptional = callee['optional'] === true;
    return (evaluation) => {
      const holder = receiver(evaluation);
      if (holder === SHORT || (isOptional && (holder === undefined || holder === null))) return SHORT;
      return call(holder, evaluation);
    };
  }

  #methodCall(
    name: string,
    object: SyntaxNode,
    args: readonly SyntaxNode[],
  ): ((holder: LocalValue, evaluation: Evaluation) => LocalValue) | undefined {
    const iterate = ITERATIONS.get(name);
    if (iterate !== undefined) {
      const [callback, ...more] = args;
      if (callback === undefined || more.length > 0) return undefined;
      const run = this.#callback(callback);
      return (holder, evaluation) =>
        isList(holder)
          ? iterate(holder, (each, index) => run(each, index, evaluation), evaluation)
          : decline();
    }
    const changed = CHANGING_METHODS.get(name);
    if (changed !== undefined && !isNewList(object)) return undefined;
    const ofList = LIST_METHODS.get(changed ?? name);
    const ofText = TEXT_METHODS.get(name);
    const ofNumber = NUMBER_METHODS.get(name);
    if (ofList === undefined && ofText === undefined && ofNumber === undefined) return undefined;
    const all = this.#all(args);
    return (holder, evaluation) => {
      const { budget } = evaluation;
      if (typeof holder === 'string' && ofText !== undefined) return ofText(holder, all(evaluation), budget);
      if (typeof holder === 'number' && ofNumber !== undefined)
        return ofNumber(holder, all(evaluation), budget);
      return isList(holder) && ofList !== undefined ? ofList(holder, all(evaluation), budget) : decline();
    };
  }

  /** An arrow function, or a global function that takes one argument. */
  #callback(node: SyntaxNode): Callback {
    const name = identifierName(node);
    if (name !== undefined) {
      const called = this.#scope.has(name) || !CALLBACKS.has(name) ? undefined : FUNCTIONS.get(name);
      return called === undefined ? refuse(node) : (each, _, evaluation) => called([each], evaluation);
    }
    if (node.type !== 'ArrowFunctionExpression' || node['expression'] !== true) return refuse(node);
    const [outer, before] = [this.#scope, this.nodes];
    const scope = new Map(outer);
    const parameters = childrenIn(node, 'params').map((parameter) => this.#parameter(parameter, scope));
    if (parameters.length > 2) return refuse(node);
    this.#scope = scope;
    const body = this.compile(childOf(node, 'body'));
    this.#scope = outer;
    // Spent for each element.
    const nodes = 1 + this.nodes - before;
    this.nodes = before + 1;
    const [bindElement, bindIndex] = parameters;
    return (each, index, evaluation) => {
      evaluation.budget.spend(nodes);
      bindElement?.(each, evaluation);
      bindIndex?.(index, evaluation);
      return body(evaluation);
    };
  }

  /** `x`, `[x, y]` or `{ x, y: z }`. */
  #parameter(node: SyntaxNode, scope: Map<string, number>): Bind {
    this.nodes += 1;
    if (node.type === 'ArrayPattern') {
      const members = childrenIn(node, 'elements').map((element) => this.#variable(element, scope));
      return (value, evaluation) => {
        const list = isList(value) ? value : decline();
        for (const [at, bind] of members.entries()) bind(list[at], evaluation);
      };
    }
    if (node.type !== 'ObjectPattern') return this.#variable(node, scope);
    const members = childrenIn(node, 'properties').map((property) => {
      const key = property.type === 'Property' ? staticKey(property, 'key') : undefined;
      if (key === undefined) return refuse(property);
      return { key, bind: this.#variable(childOf(property, 'value'), scope) };
    });
    return (value, evaluation) => {
      for (const { key, bind } of members) bind(memberOf(value, key), evaluation);
      if (members.length === 0) decline();
    };
  }

  #variable(node: SyntaxNode, scope: Map<string, number>): Bind {
    this.nodes += 1;
    const slot = this.#slots++;
    scope.set(identifierName(node) ?? refuse(node), slot);
    return (value, { slots }) => {
      slots[slot] = value;
    };
  }
}

function literal(node: SyntaxNode): Evaluate {
  const { value, regex } = node;
  if (regex !== undefined) return refuse(node);
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      return () => value;
    default:
      return value === null ? () => null : refuse(node);
  }
}

/** `context` is no value here, only its members are. */
function contextMember(node: SyntaxNode): Evaluate {
  switch (staticKey(node, 'property')) {
    case 'vcluster':
      return ({ vcluster }) => vcluster;
    case 'hostObject':
      return ({ hostObject }) => hostObject;
    case 'virtualObject':
      return ({ virtualObject }) => virtualObject;
    case 'path':
      return ({ path }) => path;
    default:
      return refuse(node);
  }
}

/** What is known to have no other reference. */
function isNewList(node: SyntaxNode): boolean {
  if (node.type === 'ArrayExpression') return true;
  const callee = node.type === 'CallExpression' ? node['callee'] : undefined;
  if (!isNode(callee) || callee.type !== 'MemberExpression') return false;
  return NEW_LIST_METHODS.has(staticKey(callee, 'property') ?? '');
}

function iterated(value: LocalValue, budget: Budget): Iterable<LocalValue> {
  if (typeof value === 'string') {
    budget.spend(value.length);
    budget.read(value.length);
    return value;
  }
  if (!isList(value)) return decline();
  budget.spend(value.length);
  return value;
}

function assign(object: Record<string, LocalValue>, source: LocalValue, budget: Budget): void {
  if (source === undefined || source === null) return;
  if (!isObject(source)) return decline();
  for (const key of Object.keys(source)) {
    budget.spend(1);
    budget.read(key.length);
    setMember(object, key, source[key]);
  }
}

type Iterate = (
  list: readonly LocalValue[],
  callback: (each: LocalValue, index: number) => LocalValue,
  evaluation: Evaluation,
) => LocalValue;

const ITERATIONS: ReadonlyMap<string, Iterate> = new Map<string, Iterate>([
  ['every', (list, callback) => list.every(callback)],
  ['filter', (list, callback) => list.filter(callback)],
  ['find', (list, callback) => list.find(callback)],
  ['flatMap', (list, callback, { budget }) => flattened(list.map(callback), budget)],
  ['map', (list, callback) => list.map(callback)],
  ['some', (list, callback) => list.some(callback)],
]);
/** They ignore the index and the list. */
const CALLBACKS: ReadonlySet<string> = new Set(['Boolean', 'Number', 'String']);

type Primitive = ReturnType<typeof primitiveOf>;

/** A text that an operator reads to the end. */
function operand(value: LocalValue, budget: Budget): Primitive {
  const primitive = primitiveOf(value);
  if (typeof primitive === 'string') budget.read(primitive.length);
  return primitive;
}

const UNARY: Readonly<Record<string, (value: LocalValue, budget: Budget) => LocalValue>> = {
  '!': (value) => !value,
  '+': (value, budget) => Number(operand(value, budget)),
  '-': (value, budget) => -Number(operand(value, budget)),
  '~': (value, budget) => ~Number(operand(value, budget)),
  typeof: (value) => typeof value,
  void: () => undefined,
};

function unary(node: SyntaxNode, argument: Evaluate): Evaluate {
  const apply = UNARY[String(node['operator'])] ?? refuse(node);
  return (evaluation) => apply(argument(evaluation), evaluation.budget);
}

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

function sum(left: LocalValue, right: LocalValue, budget: Budget): LocalValue {
  const [a, b] = [operand(left, budget), operand(right, budget)];
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
  return (left, right, budget) => of(Number(operand(left, budget)), Number(operand(right, budget)));
}

type BinaryOperator = (left: LocalValue, right: LocalValue, budget: Budget) => LocalValue;

const BINARY: Readonly<Record<string, BinaryOperator>> = {
  '+': sum,
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

function binary(node: SyntaxNode, left: Evaluate, right: Evaluate): Evaluate {
  const apply = BINARY[String(node['operator'])] ?? refuse(node);
  return (evaluation) => apply(left(evaluation), right(evaluation), evaluation.budget);
}

function logical(node: SyntaxNode, left: Evaluate, right: Evaluate): Evaluate {
  switch (node['operator']) {
    case '&&':
      return (evaluation) => left(evaluation) && right(evaluation);
    case '||':
      return (evaluation) => left(evaluation) || right(evaluation);
    case '??':
      return (evaluation) => left(evaluation) ?? right(evaluation);
    default:
      return refuse(node);
  }
}
