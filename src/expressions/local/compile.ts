/** Compiles the checked syntax tree to closures, or names the first construct that only the sandbox evaluates. What is compiled ends: there are no loops,
 * no function that calls itself, and no assignment; arrow functions stand only where a method of a list calls them, once for each element. */

import type { ParsedExpression } from '../front-end/parse.ts';
import { identifierName, isNode, staticKey, type SyntaxNode } from '../front-end/syntax-tree.ts';
import { Budget, decline } from './budget.ts';
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
import { BINARY_OPERATORS, sum, UNARY_OPERATORS } from './operators.ts';
import { PATTERN_METHODS, patternOf, test, type Pattern } from './patterns.ts';
import {
  Evaluation,
  type BoundExpression,
  type Constants,
  type Evaluate,
  type LocalProgram,
  type LocalValue,
} from './types.ts';
import { isList, isObject, memberOf } from './values.ts';

export function compileLocally({ statements, result }: ParsedExpression): LocalProgram {
  const bind = (constants?: Constants): BoundExpression => {
    const compiler = new Compiler(constants);
    return { evaluate: compiler.compile(result), nodes: compiler.nodes };
  };
  try {
    const [statement] = statements;
    if (statement !== undefined) refuse(statement);
    bind();
    return { kind: 'local', bind };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const { start, end } = error.node;
    return { kind: 'sandbox', start, end };
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
  readonly #constants: Constants | undefined;
  /** For what is evaluated once. */
  readonly #evaluation = new Evaluation({ hostObject: null, virtualObject: null }, new Budget());
  readonly #known = new Map<Evaluate, LocalValue>();
  /** Reads of what differs between evaluations. */
  #inputs = 0;
  #slots = 0;
  #scope: ReadonlyMap<string, number> = new Map();

  /** Without constants, what is compiled is not evaluated. */
  constructor(constants: Constants | undefined) {
    this.#constants = constants;
  }

  /** What reads nothing but constants is evaluated once. */
  compile(node: SyntaxNode): Evaluate {
    const [nodes, inputs] = [this.nodes, this.#inputs];
    this.nodes += 1;
    const evaluate = this.#compile(node);
    if (this.#constants === undefined || this.#inputs > inputs) return evaluate;
    const { budget } = this.#evaluation;
    let value: LocalValue;
    try {
      budget.begin();
      budget.spend(this.nodes - nodes);
      value = evaluate(this.#evaluation);
    } catch {
      return evaluate; // declines each time
    }
    this.nodes = nodes + 1;
    const constant = (): LocalValue => value;
    this.#known.set(constant, value);
    return constant;
  }

  #compile(node: SyntaxNode): Evaluate {
    switch (node.type) {
      case 'Literal':
        return literal(node);
      case 'TemplateLiteral':
        return this.#template(node);
      case 'Identifier':
        return this.#identifier(node);
      case 'MemberExpression':
      case 'CallExpression':
        return this.#chain(node) as Evaluate; // nothing is optional outside of a ChainExpression
      case 'ChainExpression':
        return this.#whole(this.#chain(childOf(node, 'expression')));
      case 'UnaryExpression':
        return unary(node, this.compile(childOf(node, 'argument')));
      case 'BinaryExpression':
        if (node['operator'] === '+') return this.#sum(node);
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
    if (slot !== undefined) return this.#input(({ slots }) => slots[slot]);
    switch (name) {
      case 'value':
        return this.#input(({ value }) => value);
      case 'valueExists':
        return this.#input(({ value }) => value !== undefined);
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
    return this.#concatenation(texts.flatMap((text, at) => [text, ...parts.slice(at, at + 1)]));
  }

  /** `a + b + c` is `(a + b) + c`, and a concatenation from the first operand that is known to be a text. */
  #sum(node: SyntaxNode): Evaluate {
    const operands: SyntaxNode[] = [];
    let rest = node;
    for (; rest.type === 'BinaryExpression' && rest['operator'] === '+'; rest = childOf(rest, 'left'))
      operands.unshift(childOf(rest, 'right'));
    operands.unshift(rest);
    this.nodes += operands.length - 2;
    const parts = operands.map((operand) => this.compile(operand));
    const isText = (part: Evaluate, at: number): boolean =>
      operands[at]?.type === 'TemplateLiteral' || typeof this.#known.get(part) === 'string';
    const firstText = parts.findIndex(isText);
    // Either operand of the first sum may be the text.
    const summed = firstText < 0 ? parts.length : Math.max(1, firstText);
    const total = parts
      .slice(0, summed)
      .reduce((left, right) => (evaluation) => sum(left(evaluation), right(evaluation), evaluation.budget));
    return firstText < 0 ? total : this.#concatenation([total, ...parts.slice(summed)]);
  }

  #concatenation(pieces: readonly (string | Evaluate)[]): Evaluate {
    const texts = [''];
    const parts: Evaluate[] = [];
    for (const piece of pieces) {
      const text = typeof piece === 'string' ? piece : this.#known.get(piece);
      if (typeof text === 'string') {
        texts.push((texts.pop() ?? '') + text);
      } else if (typeof piece !== 'string') {
        parts.push(piece);
        texts.push('');
      }
    }
    const [first = '', last] = texts;
    const [part] = parts;
    if (part !== undefined && parts.length === 1 && last === '') {
      return (evaluation) => {
        const text = `${first}${primitiveOf(part(evaluation))}`;
        evaluation.budget.read(2 * text.length - first.length); // the part, and the text
        return text;
      };
    }
    return (evaluation) => {
      const { budget } = evaluation;
      let text = first;
      for (let at = 0; at < parts.length; at++) {
        text += printed(parts[at]?.(evaluation), budget) + (texts[at + 1] ?? '');
        budget.read(text.length);
      }
      return text;
    };
  }

  #input(read: Evaluate): Evaluate {
    this.#inputs += 1;
    return read;
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
    return (object, evaluation) => setMember(object, key(evaluation), value(evaluation), evaluation.budget);
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
    if (identifierName(object) === 'context' && !this.#scope.has('context')) return this.#contextMember(node);
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
      const constants = this.#constants;
      return (evaluation) => called(all(evaluation), evaluation, constants);
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
    const tested = name === 'test' ? regexpOf(object) : undefined;
    if (tested !== undefined) {
      const [argument, ...more] = args;
      if (argument === undefined || more.length > 0) return refuse(callee);
      const text = this.compile(argument);
      return (evaluation) => test(tested, text(evaluation), evaluation.budget);
    }
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
    const pattern = args[0] && regexpOf(args[0]);
    if (pattern !== undefined) return this.#patternCall(name, pattern, args.slice(1));
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

  #patternCall(
    name: string,
    pattern: Pattern,
    args: readonly SyntaxNode[],
  ): ((holder: LocalValue, evaluation: Evaluation) => LocalValue) | undefined {
    const [count, method] = PATTERN_METHODS.get(name) ?? [];
    if (method === undefined || args.length !== count) return undefined;
    const all = this.#all(args);
    return (holder, evaluation) =>
      typeof holder === 'string' ? method(holder, pattern, all(evaluation), evaluation.budget) : decline();
  }

  /** An arrow function, or a global function that takes one argument. */
  #callback(node: SyntaxNode): Callback {
    const name = identifierName(node);
    if (name !== undefined) {
      const called = this.#scope.has(name) || !CALLBACKS.has(name) ? undefined : FUNCTIONS.get(name);
      return called === undefined
        ? refuse(node)
        : (each, _, evaluation) => {
            evaluation.budget.spend(1);
            return called([each], evaluation, undefined);
          };
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

  /** `context` is no value here, only its members are. */
  #contextMember(node: SyntaxNode): Evaluate {
    const vcluster = this.#constants?.vcluster;
    switch (staticKey(node, 'property')) {
      case 'vcluster':
        return () => vcluster;
      case 'hostObject':
        return this.#input(({ context }) => context.hostObject);
      case 'virtualObject':
        return this.#input(({ context }) => context.virtualObject);
      case 'path':
        return this.#input(({ path }) => path);
      default:
        return refuse(node);
    }
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

function regexpOf({ type, regex }: SyntaxNode): Pattern | undefined {
  if (type !== 'Literal' || regex === undefined) return undefined;
  const { pattern, flags } = regex as { pattern: string; flags: string }; // the type of a regular expression literal
  return patternOf(pattern, flags);
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
    setMember(object, key, source[key], budget);
  }
}

type Iterate = (
  list: readonly LocalValue[],
  callback: (each: LocalValue, index: number) => LocalValue,
  evaluation: Evaluation,
) => LocalValue;

export const ITERATIONS: ReadonlyMap<string, Iterate> = new Map<string, Iterate>([
  ['every', (list, callback) => list.every(callback)],
  ['filter', (list, callback) => list.filter(callback)],
  ['find', (list, callback) => list.find(callback)],
  ['flatMap', (list, callback, { budget }) => flattened(list.map(callback), budget)],
  ['map', (list, callback) => list.map(callback)],
  ['some', (list, callback) => list.some(callback)],
]);
/** They ignore the index and the list. */
const CALLBACKS: ReadonlySet<string> = new Set(['Boolean', 'Number', 'String']);

function unary(node: SyntaxNode, argument: Evaluate): Evaluate {
  const apply = UNARY_OPERATORS[String(node['operator'])] ?? refuse(node);
  return (evaluation) => apply(argument(evaluation), evaluation.budget);
}

function binary(node: SyntaxNode, left: Evaluate, right: Evaluate): Evaluate {
  const apply = BINARY_OPERATORS[String(node['operator'])] ?? refuse(node);
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
