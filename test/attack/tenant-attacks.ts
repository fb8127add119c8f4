/** The hostile expressions of the other tests, each as a patch of an annotation that one object has, and what may become of that annotation. */

import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { Random } from '../../src/base/random.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { compileExpression } from '../../src/expressions/front-end/compile-expression.ts';
import { endpoints, subset } from '../scenarios/objects.ts';
import { CONTROL_TEXT } from './control-text.ts';
import {
  CLOCKS,
  DATES,
  ENDLESS,
  HIDDEN_CLOCKS,
  REFUSED,
  REGEXPS,
  STATELESS,
  WEDGES,
} from './hostile-expressions.ts';
import { endlessExpression, hostileExpression } from './hostile-grammar.ts';
import { HOSTILE_EXPRESSIONS } from './tenants.ts';
import {
  acceptable,
  expressionOf,
  mayBeStopped,
  valueOf,
  WORKED_CASES,
  type Expectation,
  type WorkedCase,
} from './worked-cases.ts';

/** The copy has the annotation with this text, or it does not have it, with or without an Event `PatchFailed` on the object. */
export type Effect = { readonly text: string } | 'removed' | 'failed';

export interface TenantAttack {
  /** Of its object. */
  readonly name: string;
  readonly expression: string;
  /** What the annotation has, and the expression gets. */
  readonly text: string;
  /** Undefined: each. */
  readonly allowed: readonly Effect[] | undefined;
  /** A limit may have to end it, which takes long. */
  readonly mayBeStopped: boolean;
}

/** Of all hostile objects. */
export const EVIL_NAMESPACE = 'evil';
export const EVIL_IP = '10.66.0.1';
const EVIL_TEXT = `${'a'.repeat(32)}b`;

export function annotationOf({ name }: TenantAttack): string {
  return `attack.example.com/${name}`;
}

export function patchOf(attack: TenantAttack): JsonObject {
  return { path: `metadata.annotations["${annotationOf(attack)}"]`, expression: attack.expression };
}

export function objectOf(attack: TenantAttack): KubeObject {
  return endpoints(`${EVIL_NAMESPACE}/${attack.name}`, {
    annotations: { [annotationOf(attack)]: attack.text },
    subsets: [subset(EVIL_IP)],
  });
}

/** Expressions with which no configuration is accepted. */
export const REFUSED_EXPRESSIONS: readonly string[] = [
  ...WORKED_CASES.map(expressionOf).filter((expression) => !isAccepted(expression)),
  ...CLOCKS,
  ...HIDDEN_CLOCKS.filter((expression) => !isAccepted(expression)),
  ...REFUSED,
];

/** The others of the tables. */
export const KNOWN_ATTACKS: readonly TenantAttack[] = [
  ...WORKED_CASES.flatMap(workedAttacks),
  ...DATES.flatMap(([expression, value], at) => attack(`date-${at}`, expression, 'v', effectsOf({ value }))),
  ...HIDDEN_CLOCKS.flatMap((expression, at) => attack(`clock-${at}`, expression, 'v', ['failed'])),
  ...STATELESS.flatMap(([, expression, value], at) =>
    attack(`stateless-${at}`, expression, 'v', effectsOf({ value })),
  ),
  ...REGEXPS.flatMap(([regexp, text], at) =>
    attack(`regexp-${at}`, `${regexp}.test(value) + ""`, text, [{ text: 'false' }]),
  ),
  ...attack('control-text', 'value + "!"', CONTROL_TEXT, [{ text: `${CONTROL_TEXT}!` }]),
  ...attack('control-error', '(() => { throw new Error(value); })()', CONTROL_TEXT, ['failed']),
  ...[...ENDLESS, ...WEDGES].flatMap((expression, at) =>
    attack(`endless-${at}`, expression, 'v', ['failed'], true),
  ),
  ...Object.values(HOSTILE_EXPRESSIONS).flatMap((expression, at) =>
    attack(`hostile-${at}`, expression, EVIL_TEXT, ['failed'], true),
  ),
];

/** So many of the grammar that the front end accepts. */
export function randomAttacks(random: Random, count: number): TenantAttack[] {
  const attacks: TenantAttack[] = [];
  while (attacks.length < count - 1)
    attacks.push(...attack(`random-${attacks.length}`, hostileExpression(random).text, 'v', undefined));
  return [...attacks, ...attack('random-endless', endlessExpression(random).text, 'v', ['failed'], true)];
}

/** The expression of a case, and the one that finds no trace of it. */
function workedAttacks(each: WorkedCase): TenantAttack[] {
  const { id, then } = each;
  // The table has names and paths of its own there.
  const isOfContext = /context\.(vcluster|path)/u.test(expressionOf(each));
  const allowed = isOfContext ? undefined : acceptable(each, 'checked').flatMap(effectsOf);
  const first = attack(id, expressionOf(each), valueOf(each), allowed, mayBeStopped(each, 'checked'));
  // The object of the table is another one.
  if (then === undefined || then.expression.includes('context.')) return first;
  return [...first, ...attack(`${id}-then`, then.expression, then.value ?? 'v', effectsOf(then.expect))];
}

/** None: the front end refuses it, and so does the configuration. */
function attack(
  name: string,
  expression: string,
  value: JsonValue | undefined,
  allowed: TenantAttack['allowed'],
  isStopped = false,
): TenantAttack[] {
  const known = { name, expression, allowed, mayBeStopped: isStopped };
  if (!isAccepted(expression)) return [];
  if (typeof value === 'string') return [{ ...known, text: value }];
  // A tenant can write only text there, and JSON is text.
  const [text, argument] =
    value === undefined ? ['v', 'undefined'] : [JSON.stringify(value), 'JSON.parse(value)'];
  const wrapped = `((value) => (${expression}))(${argument})`;
  if (!isAccepted(wrapped)) return [{ ...known, text, allowed: undefined }];
  return [{ ...known, expression: wrapped, text }];
}

function isAccepted(expression: string): boolean {
  return compileExpression(expression, 0).ok;
}

/** An annotation is a text, so a patch that makes anything else of it fails. */
function effectsOf(expected: Expectation): Effect[] {
  if (expected.error !== undefined) return ['failed'];
  if (expected.any === true) return ['failed', 'removed'];
  const value: unknown = expected.value_json === undefined ? expected.value : JSON.parse(expected.value_json);
  if (value === undefined || value === null) return ['removed'];
  return typeof value === 'string' ? [{ text: value }] : ['failed'];
}
