/** Checks the sync's sections of a configuration file, and makes its configuration of them. Pure. */

import type { ConfigProblem } from '../../base/errors.ts';
import { type JsonObject, valueAt } from '../../base/json.ts';
import { Fields, pathOf, type ConfigPath, type Finding } from '../../config-file/finding.ts';
import { applyOverrides, type Override } from '../../config-file/overrides.ts';
import { checkSections } from '../../config-file/schema-check.ts';
import {
  problemsOfLayers,
  readLayers,
  type ConfigText,
  type Layers,
  type VclusterText,
} from '../../shared-config/layers.ts';
import { isOtherFile, vclusterConfigOf } from '../../shared-config/vcluster-values.ts';
import type * as z from 'zod';
import type { KindSettings } from '../kinds/kind.ts';
import { SHARED_KEYS, SYNCED_KEYS, type SyncedKey } from '../kinds/synced-kinds.ts';
import type { NamespaceMode } from '../translate/types.ts';
import { NO_COMPANION, type Config, type SyncConfig } from './config.ts';
import { isFleet, refusedFleet } from './fleet-rules.ts';
import { checkPatches } from './patch-rules.ts';
import { checkRules } from './rules.ts';
import { namelessSections, syncSections } from './schema.ts';
import { patchedKeys, syncsServices } from './sync-fields.ts';
import { longNameFindings } from './long-names.ts';
import { configWarnings, syncedByVcluster, unsyncedServices, vclusterFindings } from './warnings.ts';

export interface SyncOptions {
  /** For commands that need no virtual cluster. */
  readonly isNameOptional?: boolean;
  /** The daemon starts with it, so what vCluster syncs too is an error; else a warning. */
  readonly isStart?: boolean;
  /** For commands that know fleets; to the others, a configuration is that of one virtual cluster. */
  readonly acceptsFleet?: boolean;
  /** Absent: whether the files that the configuration names exist is not checked. */
  readonly fileExists?: (path: string) => boolean;
}

/** Only its own file says what this program syncs, see {@link SHARED_KEYS}. */
export const NOT_INHERITED: readonly ConfigPath[] = SHARED_KEYS.map((key) => [
  'sync',
  'toHost',
  key,
  'enabled',
]);

interface CheckedSync {
  /** Undefined if the sections are invalid. Of no use if a finding is an error. */
  readonly config: Config | undefined;
  readonly findings: readonly Finding[];
}

export function checkSync({ own, merged, written, vcluster }: Layers, options: SyncOptions): CheckedSync {
  const fields = new Fields(merged);
  const { isStart = false } = options;
  const isOther = vcluster !== undefined && isOtherFile(vcluster);
  const isNameOptional = options.isNameOptional === true || isFleet(fields);
  const { data, findings } = checkSections(
    isNameOptional ? namelessSections : syncSections,
    syncsServices(fields) ? merged : withoutServicePatches(merged),
  );
  return {
    config: data && configOf(data, merged, isOther ? undefined : vcluster),
    findings: [
      ...findings,
      ...patchedKeys(fields).flatMap((key) => {
        const path = pathOf(`sync.toHost.${key}.patches`);
        return checkPatches(valueAt(written, path), path, key);
      }),
      ...checkRules(fields),
      ...(options.acceptsFleet === true ? [] : refusedFleet(fields)),
      ...configWarnings({ merged, own }, options.fileExists),
      ...(isOther
        ? []
        : [
            ...(vcluster === undefined ? unsyncedServices(own) : vclusterFindings(merged, vcluster, isStart)),
            ...longNameFindings(merged, vcluster, isStart),
          ]),
    ],
  };
}

type Sections = z.output<typeof syncSections>;

/** `vcluster`: its own values; undefined: not known. */
function configOf(
  { sync, experimental, endpointSyncer }: Sections,
  merged: JsonObject,
  vcluster: JsonObject | undefined,
): Config {
  const vclusterValues = vclusterConfigOf(merged);
  return {
    ...endpointSyncer,
    defaults: new Fields(merged).object('endpointSyncer.defaults'),
    companion: NO_COMPANION,
    sync: {
      ...syncConfig({ sync, experimental }, vclusterValues),
      syncedByVcluster: vcluster && syncedByVcluster(vcluster),
    },
    vclusterValues,
  };
}

/** Patches of Services are vCluster's, in whatever form, where it syncs them. */
function withoutServicePatches(merged: JsonObject): JsonObject {
  const path = ['sync', 'toHost', 'services', 'patches'];
  return valueAt(merged, path) === undefined
    ? merged
    : applyOverrides(merged, [{ path, value: undefined, origin: '' }]);
}

function syncConfig(
  { sync, experimental }: Pick<Sections, 'sync' | 'experimental'>,
  vclusterValues: JsonObject,
): Omit<SyncConfig, 'syncedByVcluster'> {
  const { toHost } = sync;
  const kinds = SYNCED_KEYS.map((key): [SyncedKey, KindSettings] => {
    const { enabled, patches } = toHost[key];
    return [key, { enabled, patches }];
  });
  const values = new Fields(vclusterValues);
  return {
    ...(Object.fromEntries(kinds) as Record<SyncedKey, KindSettings>), // an entry for each
    namespaces: namespaceMode(toHost.namespaces, experimental.multiNamespaceMode.enabled),
    enabledResources: enabledKeys(values.object('sync.toHost')),
    enabledCustomResources: enabledKeys(values.object('sync.toHost.customResources')),
  };
}

function namespaceMode(
  namespaces: Sections['sync']['toHost']['namespaces'],
  isLegacyMulti: boolean,
): NamespaceMode {
  if (isLegacyMulti) return { kind: 'legacy-multi' };
  if (!namespaces.enabled) return { kind: 'single' };
  return { kind: 'mappings', byName: namespaces.mappings.byName, mappingsOnly: namespaces.mappingsOnly };
}

function enabledKeys(section: JsonObject): ReadonlySet<string> {
  return new Set(Object.keys(section).filter((key) => valueAt(section, [key, 'enabled']) === true));
}

export interface SyncResult {
  readonly config?: Config;
  /** In the order of the file; problems without a position come first. */
  readonly problems: readonly ConfigProblem[];
  /** The position of a finding by a later check. */
  readonly locate: (finding: Finding) => ConfigProblem;
}

/** The configuration of a virtual cluster whose file has the sync's sections alone. `overrides`: weakest first. */
export function parseSync(
  source: ConfigText,
  { overrides, ...options }: SyncOptions & { readonly overrides: readonly Override[] },
  vclusterText: VclusterText,
): SyncResult {
  const read = { sections: syncSections, notInherited: NOT_INHERITED };
  const layers = readLayers(source, overrides, read, vclusterText);
  const { locate } = layers;
  if (!layers.isReadable) return { problems: layers.problems, locate };
  const { config, findings } = checkSync(layers, options);
  const problems = problemsOfLayers(layers, findings);
  const isInvalid = config === undefined || problems.some(({ severity }) => severity === 'error');
  return isInvalid ? { problems, locate } : { config, problems, locate };
}
