/** What is known of every annotation, label and path of a pair before anything is decided about the whole: the first half of a merge. */

import { asJson, type KubeObject, type StringMap } from '../../../kube/object.ts';
import { ownValue, setOwn, type JsonObject } from '../../../base/json.ts';
import {
  isBookkeepingAnnotation,
  isBookkeepingLabel,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  OBJECT_HOST_NAME,
  parseManagedAnnotations,
} from '../metadata/bookkeeping.ts';
import { NO_CONTENT } from '../content.ts';
import { labelsToHost, stringMapOf } from '../metadata/labels.ts';
import type { Arrival } from './incoming.ts';
import { decodeLastSynced, type LastSynced } from './last-synced.ts';
import { planMap, type MapMergeInput, type PlannedKey } from './merge-map.ts';
import { planPaths, type PlannedPaths } from './merge-paths.ts';
import type { ConcretePath, ContentRules, FlowRules, LabelTranslator } from '../types.ts';

export interface MergeInput {
  readonly virtual: KubeObject;
  /** The host copy as it is; undefined: it is created, or rewritten so that nothing of the old one stays. */
  readonly host: KubeObject | undefined;
  /** What the virtual object translates and patches to, bookkeeping included (see `forge.ts`). */
  readonly desired: KubeObject;
  readonly labels: LabelTranslator;
  readonly flows: FlowRules;
  /** Default: nothing but metadata crosses both ways. */
  readonly content?: ContentRules;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
  readonly memory?: MergeMemory | undefined;
  /** What this process knows of the values that the record says are on their way; undefined: nothing. */
  readonly arrival?: Arrival | undefined;
}

/** What this process remembers of a pair; without it, the record alone decides. */
export interface MergeMemory {
  /** Both objects when they were in step last. */
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** Values that another syncer has copied back are replaced now; otherwise, they stay. */
  readonly restoresEchoes: boolean;
  /** Annotations and labels that both sides keep rewriting, as {@link idOfKey}: they are left alone for now. */
  readonly held?: ReadonlySet<string>;
}

/** `annotations KEY` or `labels KEY`, in the host's key space. */
export function idOfKey(member: 'annotations' | 'labels', key: string): string {
  return `${member} ${key}`;
}

/** A key that is not synced: by configuration, or for now. */
export function isHeld(
  { labels, memory }: MergeInput,
  member: 'annotations' | 'labels',
  key: string,
): boolean {
  const virtualKey = member === 'labels' ? labels.keyToVirtual(key) : key;
  return labels.isExcluded(member, virtualKey) || memory?.held?.has(idOfKey(member, key)) === true;
}

export interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

export function planAnnotations(
  input: MergeInput,
  { host, record, arrival }: Recorded & { readonly host: StringMap | undefined },
): readonly PlannedKey[] {
  const crosses = (key: string): boolean => !isBookkeepingAnnotation(key);
  const flowOf = (key: string) => input.flows.flowOf(['metadata', 'annotations', key]);
  const managed = host && parseManagedAnnotations(ownValue(host, MANAGED_ANNOTATIONS) as string | undefined);
  return planMap({
    virtual: pick(stringMapOf(input.virtual.metadata.annotations), crosses),
    host: host && pick(host, crosses),
    forward: pick(stringMapOf(input.desired.metadata.annotations), crosses),
    section: record?.annotations,
    arrival,
    flowOf,
    isHeld: (key) => isHeld(input, 'annotations', key),
    ...echoInput(input, 'annotations', (object) => pick(stringMapOf(object.metadata.annotations), crosses)),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: managed !== undefined && !managed.has(key),
      hostOnly: managed?.has(key) ? 'remove' : flowOf(key) === 'both' ? 'take' : 'keep',
    }),
  });
}

export function planLabels(input: MergeInput, { record, arrival }: Recorded): readonly PlannedKey[] {
  const { labels, flows, host } = input;
  const isOurs = isOurLabel(input);
  const crosses = (key: string): boolean => !isOurs(key);
  return planMap({
    virtual: pick(labelsToHost(stringMapOf(input.virtual.metadata.labels), labels), crosses),
    host: host && pick(stringMapOf(host.metadata.labels), crosses),
    forward: pick(stringMapOf(input.desired.metadata.labels), crosses),
    section: record?.labels,
    arrival,
    isHeld: (key) => isHeld(input, 'labels', key),
    ...echoInput(input, 'labels', (object, side) => {
      const map = stringMapOf(object.metadata.labels);
      return pick(side === 'virtual' ? labelsToHost(map, labels) : map, crosses);
    }),
    // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
}

/**
 * The labels that come from the translation alone. Only the virtual side decides about them; they are planned because another syncer may
 * copy them back.
 */
export function planOwnLabels(input: MergeInput, { record, arrival }: Recorded): readonly PlannedKey[] {
  const { content = NO_CONTENT, host } = input;
  const virtual = stringMapOf(input.virtual.metadata.labels);
  const isOwn = (key: string): boolean => content.isOwnLabel(key) && Object.hasOwn(virtual, key);
  const ownOf = (object: KubeObject): StringMap => pick(stringMapOf(object.metadata.labels), isOwn);
  const echo = echoInput(input, 'labels', ownOf);
  return planMap({
    virtual: ownOf(input.virtual),
    host: host && ownOf(host),
    forward: ownOf(input.desired),
    section: record?.labels,
    arrival,
    flowOf: () => 'toHost',
    isHeld: () => false,
    ...echo,
    // The translation is the same for what it has translated, and no user writes that.
    echoes: { ...echo.echoes, isRecordEchoed: true },
    lostBase: () => ({ kind: 'lost', isFromHost: false, hostOnly: 'remove' }),
  });
}

function echoInput(
  input: MergeInput,
  member: 'annotations' | 'labels',
  mapOf: (object: KubeObject, side: 'virtual' | 'host') => StringMap,
): Pick<MapMergeInput, 'agreed' | 'echoes' | 'echoedSection'> {
  const { memory, virtual } = input;
  const agreed = memory?.agreed;
  const isRecordEchoed = echoedBookkeeping(input).length > 0;
  const record = isRecordEchoed ? virtual.metadata.annotations?.[LAST_SYNCED] : undefined;
  return {
    agreed: agreed && { virtual: mapOf(agreed.virtual, 'virtual'), host: mapOf(agreed.host, 'host') },
    echoes: { isRecordEchoed, restoresEcho: memory?.restoresEchoes === true },
    echoedSection: decodeLastSynced(record)?.[member],
  };
}

/** Annotations of the virtual object that are the bookkeeping of its own copy. Those of a virtual cluster inside this one name other objects. */
export function echoedBookkeeping({ virtual, desired }: MergeInput): readonly string[] {
  const annotations = stringMapOf(virtual.metadata.annotations);
  const found = Object.keys(annotations).filter(isBookkeepingAnnotation);
  if (found.length === 0) return [];
  const hostName = ownValue(annotations, OBJECT_HOST_NAME);
  const isOfCopy = hostName === undefined ? found.includes(LAST_SYNCED) : hostName === desired.metadata.name;
  return isOfCopy ? found : [];
}

export function planContent(input: MergeInput, { record, arrival }: Recorded): PlannedPaths {
  return planPaths({
    content: input.content ?? NO_CONTENT,
    virtual: asJson(input.virtual),
    host: input.host && asJson(input.host),
    desired: asJson(input.desired),
    twoWay: pathsOnBoth(input, (object) => input.flows.twoWayPaths(object)),
    hostOwned: pathsOnBoth(input, (object) => input.flows.hostOwnedPaths(object)),
    section: record?.paths,
    arrival,
  });
}

/** A label key in the host's key space that may reach the virtual side. */
export function crossingLabel(input: MergeInput): (key: string) => boolean {
  const isOurs = isOurLabel(input);
  return (key) => !isOurs(key) && !input.labels.isReserved(key) && !isHeld(input, 'labels', key);
}

/** A label of the host copy that comes from the translation alone. */
export function isOurLabel({ content = NO_CONTENT }: MergeInput): (key: string) => boolean {
  return (key) => isBookkeepingLabel(key) || content.isOwnLabel(key);
}

function pathsOnBoth(
  { desired, host }: MergeInput,
  pathsOf: (object: JsonObject) => readonly ConcretePath[],
): readonly ConcretePath[] {
  const wanted = pathsOf(asJson(desired));
  return host === undefined ? wanted : [...wanted, ...pathsOf(asJson(host))];
}

export function pick(map: StringMap, isWanted: (key: string) => boolean): StringMap {
  const picked: StringMap = {};
  for (const key of Object.keys(map)) {
    if (isWanted(key)) setOwn(picked, key, map[key] ?? '');
  }
  return picked;
}
