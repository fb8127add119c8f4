/** Translates references to Pods between the two sides. Objects need not be valid: what is not understood stays as it is. */

import { keyOf, type NamespacedName } from '../../kube/object.ts';
import { withCanonicalAddresses } from '../../base/ip-address.ts';
import { isJsonObject, jsonEquals, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { memberOf } from './content.ts';
import type { ContentRules, NameTranslator } from './types.ts';

/** Gives the `targetRef` of an address or endpoint, from the present one and its holder; undefined: none. */
export type MapTargetRef = (ref: JsonObject | undefined, holder: JsonObject) => JsonObject | undefined;

/** Applies a function to every holder of a `targetRef` in a member; what it returns unchanged costs no copy. */
type MapTargetRefs = (member: JsonValue, map: MapTargetRef) => JsonValue;

export function podReferences(
  member: string,
  mapRefs: MapTargetRefs,
): Pick<ContentRules, 'toHost' | 'toVirtual'> {
  return {
    /** Every Pod reference names the host Pod; its uid and resourceVersion go, because no Pod is watched for them. One to a Pod that has no copy is
     * left out: as it is, it may name a Pod of others. */
    toHost(virtual, { names }) {
      const { namespace = '' } = virtual.metadata;
      const map: MapTargetRef = (ref) => ref && podRefToHost(ref, namespace, names);
      return { [member]: mapRefs(memberOf(virtual, member), map) };
    },
    /** By the virtual object's own references, which have uid and resourceVersion too; then by the name rule: the only result, also in `namespace`.
     * Any other Pod of the host is left out: as it is, its name may be that of another Pod of the virtual cluster. */
    toVirtual(host, { names, namespace, original }) {
      const known = new Map<string, JsonObject>();
      const leftOut = new Map<string, JsonObject>();
      mapRefs(original === undefined ? null : memberOf(original, member), (ref, holder) => {
        const translated = ref && podRefToHost(ref, namespace, names);
        if (ref !== undefined && translated === undefined) leftOut.set(holderId(holder), ref);
        if (ref !== undefined && translated !== undefined && translated !== ref)
          known.set(refKey(translated), ref);
        return ref;
      });
      const map: MapTargetRef = (ref, holder) =>
        (ref && podRefToVirtual(ref, namespace, { names, known })) ?? leftOut.get(holderId(holder));
      return { [member]: mapRefs(memberOf(host, member), map) };
    },
  };
}

export function mapTargetRef(holder: JsonObject, map: MapTargetRef): JsonObject {
  const { targetRef } = holder;
  const isOther = targetRef !== undefined && targetRef !== null && !isJsonObject(targetRef);
  if (isOther) return holder;
  const ref = isJsonObject(targetRef) ? targetRef : undefined;
  const mapped = map(ref, holder);
  if (mapped === ref) return holder;
  if (mapped !== undefined) return { ...holder, targetRef: mapped };
  const { targetRef: _targetRef, ...rest } = holder;
  return rest;
}

/** What tells the holder of a reference from others. */
function holderId(holder: JsonObject): string {
  return JSON.stringify(
    ['ip', 'addresses'].map((key) => withCanonicalAddresses(ownValue(holder, key) ?? null)),
  );
}

export function mapElements(list: JsonValue, map: (element: JsonObject) => JsonObject): JsonValue {
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

/** Undefined: the Pod has no copy. */
function podRefToHost(ref: JsonObject, ownNamespace: string, names: NameTranslator): JsonObject | undefined {
  const named = podNamed(ref, ownNamespace);
  if (named === undefined) return ref;
  const { uid: _uid, resourceVersion: _version, ...rest } = ref;
  const host = names.podToHost(named);
  if (host === undefined) return undefined;
  return named.name === '' ? rest : Object.assign(rest, host);
}

interface Backward {
  readonly names: NameTranslator;
  readonly known: ReadonlyMap<string, JsonObject>;
}

/** Undefined: it is the copy of no Pod of this virtual cluster. */
function podRefToVirtual(
  ref: JsonObject,
  ownNamespace: string,
  { names, known }: Backward,
): JsonObject | undefined {
  const original = known.get(refKey(ref));
  if (original !== undefined && jsonEquals(podRefToHost(original, ownNamespace, names), ref)) return original;
  const named = podNamed(ref, names.hostNamespace);
  if (named === undefined || named.name === '') return ref;
  const candidates = names.toVirtualCandidates(named);
  const own = candidates.filter(({ namespace }) => namespace === ownNamespace);
  const virtual = candidates.length === 1 ? candidates[0] : own.length === 1 ? own[0] : undefined;
  return virtual === undefined || names.podToHost(virtual) === undefined
    ? undefined
    : { ...ref, name: virtual.name, namespace: virtual.namespace };
}

/** The Pod that a reference names; undefined for other kinds and for what is no reference at all. */
function podNamed(ref: JsonObject, ownNamespace: string): NamespacedName | undefined {
  const name = ownValue(ref, 'name');
  const namespace = ownValue(ref, 'namespace');
  if (ownValue(ref, 'kind') !== 'Pod' || (name !== undefined && typeof name !== 'string')) return undefined;
  return {
    name: name ?? '',
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : ownNamespace,
  };
}

function refKey(ref: JsonObject): string {
  return keyOf(podNamed(ref, '') ?? { namespace: '', name: '' });
}
