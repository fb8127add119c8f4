/** The three-way merge of a whole map of annotations or labels, key by key, in the host's key space. */

import type { StringMap } from '../../kube/object.ts';
import { ownValue, setOwn } from '../../base/json.ts';
import {
  hasArrivedAs,
  type Arrival,
  shortHash,
  type SyncedEntry,
  type SyncedSection,
} from './last-synced.ts';
import {
  isUncertain,
  followingSide,
  HOLD,
  isUntranslated,
  planHeldKey,
  planKey,
  resolveKey,
  type KeyBase,
  type KeyPlan,
  type KeyState,
} from './merge-key.ts';
import type { Flow } from './types.ts';

export interface MapMergeInput {
  /** Keys as the host has them, without those that never cross. */
  readonly virtual: StringMap;
  /** The same; undefined: there is no host copy yet. */
  readonly host: StringMap | undefined;
  readonly forward: StringMap;
  /** Undefined: no readable record. */
  readonly section: SyncedSection | undefined;
  /** See `LastSynced.isOwn`. */
  readonly isOwn: boolean;
  readonly arrival: Arrival;
  readonly flowOf: (key: string) => Flow;
  /** The key is not synced: by configuration (`excluded`), or for now. What another syncer copied back is told from it all the same. */
  readonly holdOf: (key: string) => 'excluded' | 'held' | undefined;
  /** What is known of a key where the record is lost. */
  readonly lostBase: (key: string) => KeyBase & { readonly kind: 'lost' };
  /** The maps of both sides when they were in step last; undefined: not remembered. */
  readonly agreed: { readonly virtual: StringMap; readonly host: StringMap } | undefined;
  readonly echoes: Pick<KeyState, 'isRecordEchoed' | 'restoresEcho'>;
  /** Of the last record that this process saw or wrote. */
  readonly remembered: SyncedSection | undefined;
  /** Of the record before the present one that came back to the virtual object. */
  readonly former: SyncedSection | undefined;
}

export interface PlannedKey {
  readonly key: string;
  readonly state: KeyState;
  readonly plan: KeyPlan;
  readonly isUncertain: boolean;
}

export interface MapMerge {
  readonly virtual: StringMap;
  readonly host: StringMap;
  /** By hash of the key. */
  readonly section: SyncedSection;
  /** Keys of the virtual object that are on the host by our doing. */
  readonly managed: readonly string[];
  /** Keys of which the virtual side holds, or held, what another syncer has copied back; `isLeft`: it stays there. */
  readonly echoes: readonly { readonly key: string; readonly isLeft: boolean }[];
  readonly flows: readonly KeyFlow[];
  /** Keys of which the copy held what an earlier version had not translated. */
  readonly repaired: readonly string[];
}

/** A change of one side that goes to the other one. */
export interface KeyFlow {
  /** In the host's key space. */
  readonly key: string;
  readonly to: 'host' | 'virtual';
}

export function planMap(input: MapMergeInput): readonly PlannedKey[] {
  const { virtual, host = {}, forward, agreed } = input;
  const keys = new Set([...Object.keys(virtual), ...Object.keys(host), ...Object.keys(forward)]);
  return [...keys].map((key) => {
    const state: KeyState = {
      virtual: stringAt(virtual, key),
      host: stringAt(host, key),
      forward: stringAt(forward, key),
      flow: input.flowOf(key),
      base: baseOf(input, key),
      agreed: agreed && { virtual: stringAt(agreed.virtual, key), host: stringAt(agreed.host, key) },
      remembered: input.remembered?.get(shortHash(key)),
      former: input.former?.get(shortHash(key)),
      ...input.echoes,
    };
    const hold = input.holdOf(key);
    if (hold === undefined) return { key, state, plan: planKey(state), isUncertain: isUncertain(state) };
    return { key, state, plan: hold === 'held' ? planHeldKey(state) : HOLD, isUncertain: false };
  });
}

function baseOf({ host, section, isOwn, arrival, lostBase }: MapMergeInput, key: string): KeyBase {
  if (host === undefined) return { kind: 'fresh' };
  if (section === undefined) return lostBase(key);
  return { kind: 'recorded', entry: section.get(shortHash(key)), isOwn, arrival };
}

/** The plans of `before` for what flows back; everything else as `settled` says, where what flows back has arrived. */
export function settledPlans(
  settled: readonly PlannedKey[],
  before: readonly PlannedKey[],
): readonly PlannedKey[] {
  const plans = new Map(before.map((one) => [one.key, one]));
  const forwards = new Map(settled.map(({ key, state }) => [key, state.forward]));
  const take = (one: PlannedKey): PlannedKey => {
    const state = { ...one.state, forward: forwards.get(one.key) };
    return { ...one, state, plan: { kind: 'take', isSettled: true } };
  };
  const isTaken = ({ plan }: PlannedKey): boolean => plan.kind === 'take';
  const isKept = ({ plan }: PlannedKey): boolean => plan.kind === 'echo' || plan.kind === 'hold';
  // A key that no plan knew may be one that only a reverse patch brings to the virtual side.
  const others = settled.filter(
    ({ key }) => !['take', 'echo', 'hold'].includes(plans.get(key)?.plan.kind ?? ''),
  );
  return [
    ...others.map((one) => (plans.has(one.key) ? one : take(one))),
    ...before.filter(isTaken).map(take),
    ...before.filter(isKept),
  ];
}

/** The entries of `now`, or of `before` where its incoming value has arrived since. */
export function beforeArrivals(now: SyncedSection, before: SyncedSection): SyncedSection {
  const arrived = [...before].filter(([key, entry]) => hasArrivedAs(entry, now.get(key)));
  return arrived.length === 0 ? now : new Map([...now, ...arrived]);
}

/**
 * `reversed` is the host's map translated and patched back, in the host's key space; undefined where no plan takes anything. Keys that
 * only a reverse patch made join the virtual side.
 */
export function resolveMap(planned: readonly PlannedKey[], reversed: StringMap | undefined): MapMerge {
  const [virtual, host]: StringMap[] = [{}, {}] as const;
  const section = new Map<string, SyncedEntry>();
  const managed: string[] = [];
  const echoes: { key: string; isLeft: boolean }[] = [];
  const flows: KeyFlow[] = [];
  const repaired: string[] = [];
  const seen = new Set<string>();
  for (const { key, state, plan } of planned) {
    seen.add(key);
    const result = resolveKey(state, plan, reversed && stringAt(reversed, key));
    if (plan.kind === 'echo') echoes.push({ key, isLeft: result.virtual === state.virtual });
    if (plan.kind === 'push' && isUntranslated(state)) repaired.push(key);
    const to = followingSide(state, plan, result);
    if (to !== undefined) flows.push({ key, to });
    if (result.virtual !== undefined) setOwn(virtual, key, result.virtual);
    if (result.host !== undefined) setOwn(host, key, result.host);
    if (result.entry === undefined) continue;
    section.set(shortHash(key), result.entry);
    if (result.virtual !== undefined && result.host !== undefined && !result.entry.isFromHost)
      managed.push(key);
  }
  for (const key of Object.keys(reversed ?? {})) {
    const value = reversed && stringAt(reversed, key);
    if (!seen.has(key) && value !== undefined) setOwn(virtual, key, value);
  }
  return { virtual, host, section, managed, echoes, flows, repaired };
}

function stringAt(map: StringMap, key: string): string | undefined {
  return ownValue(map, key) as string | undefined; // a map of strings
}
