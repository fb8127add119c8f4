/** The registry of kinds, and which of them a configuration syncs. */

import { apiVersionOf, type GroupVersionKind, type Resource } from '../../kube/object.ts';
import { compilePatches, type CompiledPatches } from '../patch/compile.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import type { ValidateResult } from '../patch/types.ts';
import { validateMetadata } from '../patch/validate-object.ts';
import { endpointSlices } from './endpoint-slices.ts';
import { endpoints } from './endpoints.ts';
import type { KindSettings, ServiceSettings, SyncableKind, SyncedKind } from './kind.ts';
import {
  relationsOf,
  selecting,
  selectionOf,
  type SelectionSettings,
  type VirtualCache,
} from './relations.ts';
import { services } from './services.ts';

/**
 * Kinds that this program syncs, and that vCluster can sync too. `enabled: false` in vCluster's file leaves them to this program, so only its own
 * file enables or disables them.
 */
export const SHARED_KINDS = [endpoints, endpointSlices] as const;

/** Every kind that a current or an earlier configuration can sync. */
export const SYNCABLE_KINDS = [...SHARED_KINDS, services] as const;

/** Keys of `sync.toHost`. */
export type SharedKey = (typeof SHARED_KINDS)[number]['key'];
export type SyncedKey = (typeof SYNCABLE_KINDS)[number]['key'];

export const SHARED_KEYS: readonly SharedKey[] = SHARED_KINDS.map(({ key }) => key);
export const SYNCED_KEYS: readonly SyncedKey[] = SYNCABLE_KINDS.map(({ key }) => key);

export const SYNCABLE_RESOURCES: readonly Resource[] = SYNCABLE_KINDS.map(({ resource }) => resource);

export function isSharedKey(key: string): key is SharedKey {
  return SHARED_KEYS.some((shared) => shared === key);
}

export function syncableKind(key: string | undefined): SyncableKind<SyncedKey> | undefined {
  return SYNCABLE_KINDS.find((kind) => kind.key === key);
}

/** By vCluster's own values, if they are known. */
export function isSyncedByVcluster(
  { sync }: { readonly sync: { readonly syncedByVcluster: readonly string[] | undefined } },
  { plural }: Resource,
): boolean {
  const kind = SYNCABLE_KINDS.find(({ resource }) => resource.plural === plural);
  return kind !== undefined && sync.syncedByVcluster?.includes(kind.key) === true;
}

/** As messages name the objects: the words of the key, such as EndpointSlices. */
export function kindsAt(key: SharedKey): string {
  return `${key.charAt(0).toUpperCase()}${key.slice(1)}`;
}

/** The kinds whose patches this program applies. */
export function patchedKinds(config: ServiceSettings): readonly SyncableKind<SyncedKey>[] {
  return SYNCABLE_KINDS.filter(({ leftBy }) => leftBy?.(config) === undefined);
}

/** Of kinds that are not synced, only the metadata is checked. */
export function validationOf(
  { apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown },
  config: ServiceSettings,
): ValidateResult {
  const own = patchedKinds(config).find(
    ({ resource }) => resource.kind === kind && apiVersionOf(resource) === apiVersion,
  );
  return own?.validation(config) ?? validateMetadata;
}

/** True if objects of this kind are copied under their long names, referenced or not. They are never imported for a reference: a second Pod would run,
 * a second Service would have an address. */
export function isCopiedByKind({ group, kind }: Pick<GroupVersionKind, 'group' | 'kind'>): boolean {
  const isPod = group === '' && kind === 'Pod';
  return isPod || SYNCABLE_RESOURCES.some((one) => one.group === group && one.kind === kind);
}

/** What of a configuration decides which kinds are synced. */
interface SyncSettings extends ServiceSettings {
  readonly sync: Readonly<Record<SyncedKey, KindSettings>>;
}

export interface ConfiguredKind {
  readonly kind: SyncedKind;
  readonly patches: readonly PatchConfig[];
}

/** `virtualCaches`: by plural; may be filled later. */
export function syncedKinds(
  config: SyncSettings & SelectionSettings,
  virtualCaches: ReadonlyMap<string, VirtualCache> = new Map(),
): readonly ConfiguredKind[] {
  const selection = selectionOf(config);
  const relations = relationsOf(config, selection, virtualCaches);
  return enabledKinds(config).map((one) => {
    const settings = config.sync[one.key];
    return { kind: selecting(one.create(settings, relations, config), selection), patches: settings.patches };
  });
}

function enabledKinds(config: SyncSettings): readonly SyncableKind<SyncedKey>[] {
  return SYNCABLE_KINDS.filter(({ resource }) => disablingSetting(config, resource) === undefined);
}

export function enablingSettings(
  { sync }: Pick<SyncSettings, 'sync'>,
  rights: readonly { readonly resource: string }[],
): readonly string[] {
  return SHARED_KINDS.flatMap(({ key, resource: { plural } }) => {
    const isNeeded = sync[key].enabled && rights.some(({ resource }) => resource === plural);
    return isNeeded ? [`sync.toHost.${key}.enabled`] : [];
  });
}

/** Undefined if the resource is synced, or never can be. */
export function disablingSetting(config: SyncSettings, { plural }: Resource): string | undefined {
  const kind = SYNCABLE_KINDS.find(({ resource }) => resource.plural === plural);
  if (kind === undefined) return undefined;
  const { key, leftBy } = kind;
  return config.sync[key].enabled ? leftBy?.(config) : `sync.toHost.${key}.enabled is false`;
}

/** Asks that vCluster leaves what is synced to this program. */
export function vclusterRemedy(config: SyncSettings): string {
  const settings = enabledKinds(config).map(({ key }) => `sync.toHost.${key}.enabled`);
  return `Set ${settings.join(' and ')} to false in vCluster's values.`;
}

export interface CompiledKind {
  readonly kind: SyncedKind;
  readonly patches: CompiledPatches;
}

/** All kinds share one sandbox, so program numbers are unique across kinds. */
export function compileKinds(
  kinds: readonly ConfiguredKind[],
  { missingPaths }: { readonly missingPaths: 'skip' | 'create' },
): readonly CompiledKind[] {
  let programs = 0;
  return kinds.map(({ kind, patches }) => {
    const compiled = compilePatches(patches, programs, missingPaths);
    programs += compiled.programs.length;
    return { kind, patches: compiled };
  });
}

export function migrationOf(key: SharedKey): SyncableKind['migration'] {
  return syncableKind(key)?.migration;
}
