/** Endpoints between the two sides: Pod references in `subsets`, and the whole object. Total on any JSON. */

import { keyOf, type KubeObject, type NamespacedName } from '../kube/object.ts';
import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { NameTranslator } from './types.ts';

const ADDRESS_LISTS = ['addresses', 'notReadyAddresses'] as const;

/**
 * Every Pod reference names the host Pod; its uid and resourceVersion go, because nobody here knows the host Pod's. `namespace` is the
 * Endpoints' own, for references without one. What is not understood stays as it is, and unchanged parts are shared with the input.
 */
export function subsetsToHost(subsets: JsonValue, namespace: string, names: NameTranslator): JsonValue {
  return mapTargetRefs(subsets, (ref) => podRefToHost(ref, namespace, names));
}

/**
 * The other way: by what the virtual object's own references translate to, which brings back uid and resourceVersion too; then by the
 * name rule, where it has one answer, or one in the Endpoints' own namespace. Other references stay as they are.
 */
export function subsetsToVirtual(
  subsets: JsonValue,
  namespace: string,
  names: NameTranslator,
  virtualSubsets: JsonValue = null,
): JsonValue {
  const known = new Map<string, JsonObject>();
  mapTargetRefs(virtualSubsets, (ref) => {
    const host = podRefToHost(ref, namespace, names);
    if (host !== ref) known.set(refKey(host), ref);
    return ref;
  });
  return mapTargetRefs(subsets, (ref) => podRefToVirtual(ref, namespace, { names, known }));
}

/** Applies `map` to every `targetRef` object; what it returns unchanged costs no copy. */
function mapTargetRefs(subsets: JsonValue, map: (ref: JsonObject) => JsonObject): JsonValue {
  return mapElements(subsets, (subset) => {
    let result = subset;
    for (const list of ADDRESS_LISTS) {
      const addresses = ownValue(subset, list);
      if (addresses === undefined) continue;
      const mapped = mapElements(addresses, (address) => mapAddress(address, map));
      if (mapped !== addresses) result = { ...result, [list]: mapped };
    }
    return result;
  });
}

function mapAddress(address: JsonObject, map: (ref: JsonObject) => JsonObject): JsonObject {
  const ref = ownValue(address, 'targetRef');
  if (!isJsonObject(ref)) return address;
  const mapped = map(ref);
  return mapped === ref ? address : { ...address, targetRef: mapped };
}

function mapElements(list: JsonValue, map: (element: JsonObject) => JsonObject): JsonValue {
  if (!Array.isArray(list)) return list;
  let isChanged = false;
  const mapped = list.map((element) => {
    if (!isJsonObject(element)) return element;
    const result = map(element);
    if (result !== element) isChanged = true;
    return result;
  });
  return isChanged ? mapped : list;
}

function podRefToHost(ref: JsonObject, ownNamespace: string, names: NameTranslator): JsonObject {
  const named = podNamed(ref, ownNamespace);
  if (named === undefined) return ref;
  const { uid: _uid, resourceVersion: _version, ...rest } = ref;
  const host = named.name === '' ? undefined : names.toHost(named);
  return host === undefined ? rest : { ...rest, name: host.name, namespace: host.namespace };
}

interface Backward {
  readonly names: NameTranslator;
  readonly known: ReadonlyMap<string, JsonObject>;
}

function podRefToVirtual(ref: JsonObject, ownNamespace: string, { names, known }: Backward): JsonObject {
  const original = known.get(refKey(ref));
  if (original !== undefined && jsonEquals(podRefToHost(original, ownNamespace, names), ref)) return original;
  const named = podNamed(ref, names.hostNamespace);
  if (named === undefined || named.name === '') return ref;
  const candidates = names.toVirtualCandidates(named);
  const own = candidates.filter(({ namespace }) => namespace === ownNamespace);
  const virtual = candidates.length === 1 ? candidates[0] : own.length === 1 ? own[0] : undefined;
  return virtual === undefined ? ref : { ...ref, name: virtual.name, namespace: virtual.namespace };
}

/** The Pod that a reference names; undefined for other kinds and for what is no reference at all. */
function podNamed(ref: JsonObject, ownNamespace: string): NamespacedName | undefined {
  const [kind, name, namespace] = [ownValue(ref, 'kind'), ownValue(ref, 'name'), ownValue(ref, 'namespace')];
  if (kind !== 'Pod' || (name !== undefined && typeof name !== 'string')) return undefined;
  return {
    name: name ?? '',
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : ownNamespace,
  };
}

function refKey(ref: JsonObject): string {
  return keyOf(podNamed(ref, '') ?? { namespace: '', name: '' });
}

/** `subsets` of an Endpoints object, null when there are none. */
export function subsetsOf(object: KubeObject): JsonValue {
  const subsets = Object.hasOwn(object, 'subsets') ? object['subsets'] : undefined;
  return (subsets as JsonValue | undefined) ?? null; // every member but metadata is JSON
}
