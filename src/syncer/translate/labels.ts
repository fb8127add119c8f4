/** Translates label keys in both directions. Keys that would collide with the host's own labels are rewritten; all others are kept. */

import { hash } from 'node:crypto';
import { keyMatcher } from '../../kube/names.ts';
import { pick, rekeyed } from '../../kube/string-map.ts';
import type { StringMap } from '../../kube/object.ts';
import { safeConcat } from './names.ts';
import type { LabelTranslator, NamespaceMode } from './types.ts';

export const MANAGED_BY_LABEL = 'vcluster.loft.sh/managed-by';
const NAMESPACE_LABEL = 'vcluster.loft.sh/namespace';
/** A label or an annotation: the controller that syncs the object. */
export const CONTROLLED_BY = 'vcluster.loft.sh/controlled-by';
/** Helm finds its releases by this key, so in a namespace shared with the host's own releases it must not appear. */
const RELEASE_LABEL = 'release';

/** Labels of vCluster and of this program, which mean something on either side. */
export const OWN_LABELS: readonly string[] = [NAMESPACE_LABEL, MANAGED_BY_LABEL, CONTROLLED_BY];

/** Labels by which the Secrets of the key and token API are found. */
const PROGRAM = 'endpoint-syncer';
const PROGRAM_PREFIX = `${PROGRAM}/`;
const APP_MANAGED_BY = 'app.kubernetes.io/managed-by';

/** Keys, or PREFIX/* for all keys with a prefix. */
interface Exclusions {
  readonly excludeAnnotations: readonly string[];
  readonly excludeLabels: readonly string[];
}

const NOTHING_EXCLUDED: Exclusions = { excludeAnnotations: [], excludeLabels: [] };

export function createLabelTranslator(
  vcluster: string,
  mode: NamespaceMode,
  { excludeAnnotations, excludeLabels }: Exclusions = NOTHING_EXCLUDED,
): LabelTranslator {
  const isExcluded = { annotations: keyMatcher(excludeAnnotations), labels: keyMatcher(excludeLabels) };
  const reserved = mode.kind === 'single' ? [RELEASE_LABEL, ...OWN_LABELS] : OWN_LABELS;
  const toHost = new Map(reserved.map((key) => [key, rewrittenKey(key, vcluster)]));
  const toVirtual = new Map([...toHost].map(([virtual, host]) => [host, virtual]));
  return {
    vcluster,
    keyToHost: (key) => toHost.get(key) ?? key,
    keyToVirtual: (key) => toVirtual.get(key) ?? key,
    isReserved: (key) => toHost.has(key) || key.startsWith(PROGRAM_PREFIX),
    isExcluded: (member, key) => isExcluded[member](key),
    isRewritten: (key) => toVirtual.has(key),
  };
}

function rewrittenKey(key: string, vcluster: string): string {
  const digest = hash('sha256', key, 'hex').slice(0, 10);
  return safeConcat(['vcluster.loft.sh/label', vcluster, 'x', digest]);
}

export function markerLabels(vcluster: string, virtualNamespace: string): StringMap {
  const marker: StringMap = { [MANAGED_BY_LABEL]: vcluster };
  if (virtualNamespace !== '') marker[NAMESPACE_LABEL] = virtualNamespace;
  return marker;
}

export function isBookkeepingLabel(key: string): boolean {
  return key === MANAGED_BY_LABEL || key === NAMESPACE_LABEL;
}

/** A label of this program's own objects. It is never copied in either direction, because it would make a tenant's object look like one of ours. */
export function isProgramLabel(key: string, value: string): boolean {
  return key.startsWith(PROGRAM_PREFIX) || (key === APP_MANAGED_BY && value === PROGRAM);
}

export function virtualOnlyLabels(labels: StringMap, translator: LabelTranslator): StringMap {
  return pick(labels, (key, value) => isVirtualOnly(key, value, translator));
}

function isVirtualOnly(key: string, value: string, translator: LabelTranslator): boolean {
  return translator.isRewritten(key) || isProgramLabel(key, value);
}

export function labelsToHost(labels: StringMap, translator: LabelTranslator): StringMap {
  return rekeyed(labels, (key, value) =>
    isVirtualOnly(key, value, translator) ? undefined : translator.keyToHost(key),
  );
}

/** Without untranslated reserved keys, which another client has set on the host; with the labels of the virtual object that are never copied. */
export function labelsToVirtual(
  labels: StringMap,
  translator: LabelTranslator,
  virtual: StringMap = {},
): StringMap {
  const isLeftOut = (key: string, value: string): boolean =>
    isBookkeepingLabel(key) || translator.isReserved(key) || isProgramLabel(key, value);
  return {
    ...rekeyed(labels, (key, value) => (isLeftOut(key, value) ? undefined : translator.keyToVirtual(key))),
    ...virtualOnlyLabels(virtual, translator),
  };
}
