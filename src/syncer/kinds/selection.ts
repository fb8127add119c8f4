/** Which virtual objects the configuration selects, by their labels and namespaces. Pure. */

import { parseLabelSelector, printSelector, type SelectorOperator } from '../../kube/label-selector.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Config, LabelSelectorConfig } from '../../config/config.ts';
import { textPattern } from '../../base/text-pattern.ts';
import type { GateReason, SyncedKind } from './kind.ts';

/** Why an object is not selected; undefined: it is. */
type Selection = (virtual: KubeObject) => GateReason | undefined;

export function selectionOf({ selector, namespaces }: Pick<Config, 'selector' | 'namespaces'>): Selection {
  const hasLabels = parseLabelSelector(selectorText(selector));
  const [included, excluded] = [namespaces.include, namespaces.exclude].map((patterns) => {
    const tests = patterns.map((pattern) => textPattern(pattern));
    return (name: string): boolean => tests.some((test) => test(name));
  });
  return ({ metadata: { namespace = '', labels = {} } }) => {
    const isOutside = namespaces.include.length > 0 && included?.(namespace) === false;
    if (isOutside || excluded?.(namespace) === true) return 'namespace is excluded';
    return hasLabels(labels) ? undefined : 'not selected';
  };
}

export function selecting(kind: SyncedKind, selection: Selection): SyncedKind {
  return {
    ...kind,
    gate: (virtual, service, options) => selection(virtual) ?? kind.gate(virtual, service, options),
  };
}

const OPERATORS: Readonly<
  Record<LabelSelectorConfig['matchExpressions'][number]['operator'], SelectorOperator>
> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/** In the grammar of label selectors; '' selects everything. */
export function selectorText({ matchLabels, matchExpressions }: LabelSelectorConfig): string {
  return printSelector([
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: '=', values: [value] }) as const),
    ...matchExpressions.map(({ key, operator, values }) => ({ key, operator: OPERATORS[operator], values })),
  ]);
}
