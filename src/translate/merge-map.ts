/** The three-way merge of a whole map of annotations or labels, key by key, in the host's key space. */

import type { StringMap } from '../kube/object.ts';
import { ownValue, setOwn } from '../lib/json.ts';
import { shortHash, type SyncedEntry, type SyncedSection } from './last-synced.ts';
import { planKey, resolveKey, type KeyBase, type KeyPlan, type KeyState } from './merge-key.ts';
import type { Flow } from './types.ts';

export interface MapMergeInput {
  /** Keys as the host has them, without those that never cross. */
  readonly virtual: StringMap;
  /** The same; undefined: there is no host copy yet. */
  readonly host: StringMap | undefined;
  readonly forward: StringMap;
  /** Undefined: no readable record. */
  readonly section: SyncedSection | undefined;
  readonly flowOf: (key: string) => Flow;
  /** What is known of a key where the record is lost. */
  readonly lostBase: (key: string) => KeyBase & { readonly kind: 'lost' };
}

export interface PlannedKey {
  readonly key: string;
  readonly state: KeyState;
  readonly plan: KeyPlan;
}

export interface MapMerge {
  readonly virtual: StringMap;
  readonly host: StringMap;
  /** By hash of the key. */
  readonly section: SyncedSection;
  /** Keys of the virtual object that are on the host by our doing. */
  readonly managed: readonly string[];
}

export function planMap(input: MapMergeInput): readonly PlannedKey[] {
  const { virtual, host = {}, forward } = input;
  const keys = new Set([...Object.keys(virtual), ...Object.keys(host), ...Object.keys(forward)]);
  return [...keys].map((key) => {
    const state: KeyState = {
      virtual: stringAt(virtual, key),
      host: stringAt(host, key),
      forward: stringAt(forward, key),
      flow: input.flowOf(key),
      base: baseOf(input, key),
    };
    return { key, state, plan: planKey(state) };
  });
}

function baseOf({ host, section, lostBase }: MapMergeInput, key: string): KeyBase {
  if (host === undefined) return { kind: 'fresh' };
  return section === undefined ? lostBase(key) : { kind: 'recorded', entry: section.get(shortHash(key)) };
}

/**
 * `reversed` is the host's map translated and patched back, in the host's key space; undefined where no plan takes anything. Keys that
 * only a reverse patch made join the virtual side.
 */
export function resolveMap(planned: readonly PlannedKey[], reversed: StringMap | undefined): MapMerge {
  const [virtual, host]: StringMap[] = [{}, {}] as const;
  const section = new Map<string, SyncedEntry>();
  const managed: string[] = [];
  const seen = new Set<string>();
  for (const { key, state, plan } of planned) {
    seen.add(key);
    const result = resolveKey(state, plan, reversed && stringAt(reversed, key));
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
  return { virtual, host, section, managed };
}

function stringAt(map: StringMap, key: string): string | undefined {
  return ownValue(map, key) as string | undefined; // a map of strings
}
