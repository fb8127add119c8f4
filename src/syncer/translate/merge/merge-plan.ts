/** What is known of every annotation, label and path of a pair before anything is decided about the whole: the first half of a merge. */

import { asJson, type KubeObject, type StringMap } from '../../../kube/object.ts';
import { ownValue, setOwn, type JsonObject } from '../../../base/json.ts';
import {
  EXCLUDED_ANNOTATIONS,
  isBookkeepingAnnotation,
  isBookkeepingLabel,
  MANAGED_ANNOTATIONS,
  parseManagedAnnotations,
} from '../metadata/bookkeeping.ts';
import { NO_CONTENT } from '../content.ts';
import { labelsToHost, stringMapOf } from '../metadata/labels.ts';
import type { Arrival } from './incoming.ts';
import type { LastSynced } from './last-synced.ts';
import { planMap, type PlannedKey } from './merge-map.ts';
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
  /** Annotations that never cross; default {@link EXCLUDED_ANNOTATIONS}. */
  readonly excludedAnnotations?: ReadonlySet<string>;
  /** Kinds that the copy names, for the record; sorted. */
  readonly kinds?: readonly string[];
  /** What this process knows of the values that the record says are on their way; undefined: nothing. */
  readonly arrival?: Arrival | undefined;
}

export interface Recorded {
  readonly record: LastSynced | undefined;
  readonly arrival: Arrival;
}

export function planAnnotations(
  input: MergeInput,
  { host, record, arrival }: Recorded & { readonly host: StringMap | undefined },
): readonly PlannedKey[] {
  const crosses = crossing(input);
  const flowOf = (key: string) => input.flows.flowOf(['metadata', 'annotations', key]);
  const managed = host && parseManagedAnnotations(ownValue(host, MANAGED_ANNOTATIONS) as string | undefined);
  return planMap({
    virtual: pick(stringMapOf(input.virtual.metadata.annotations), crosses),
    host: host && pick(host, crosses),
    forward: pick(stringMapOf(input.desired.metadata.annotations), crosses),
    section: record?.annotations,
    arrival,
    flowOf,
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
    // Raw on the host, a reserved key belongs to another client: it stays and never flows back.
    flowOf: (key) => (labels.isReserved(key) ? 'toHost' : flows.flowOf(['metadata', 'labels', key])),
    lostBase: (key) => ({
      kind: 'lost',
      isFromHost: false,
      hostOnly: labels.isReserved(key) ? 'keep' : 'remove',
    }),
  });
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

export function crossing({
  excludedAnnotations = EXCLUDED_ANNOTATIONS,
}: MergeInput): (key: string) => boolean {
  return (key) => !excludedAnnotations.has(key) && !isBookkeepingAnnotation(key);
}

/** A label key in the host's key space that may reach the virtual side. */
export function crossingLabel(input: MergeInput): (key: string) => boolean {
  const isOurs = isOurLabel(input);
  return (key) => !isOurs(key) && !input.labels.isReserved(key);
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
