/** The configuration of one run of the page: the one in the editor, or that of the page with the patches in the editor. */

import type { ConfigProblem } from '../../base/errors.ts';
import { isJsonObject, ownValue, type JsonObject } from '../../base/json.ts';
import { parseConfig } from '../../config/load.ts';
import { parsePatchFile } from '../../config/patch-file.ts';
import { readDocument } from '../../config/source/document.ts';
import type { Config, ConfigChecks } from '../../config/types.ts';
import type { KubeObject } from '../../kube/object.ts';
import { PATCHED_KINDS, type PatchedKey } from '../../syncer/kinds/synced-kinds.ts';
import { CONFIG_CHECKS } from '../configuration/config-checks.ts';

export interface EditedConfig {
  /** Undefined when any problem is an error. */
  readonly config?: Config;
  /** The key that a list of patches belongs to; undefined: the editor holds a configuration. */
  readonly patchList: PatchedKey | undefined;
  readonly problems: readonly ConfigProblem[];
}

/**
 * `objects` are those to be synced: a list of patches is for the kind of the first one that can be patched. `base` is the configuration
 * of the page.
 */
export function readEditedConfig(text: string, objects: readonly KubeObject[], base: Config): EditedConfig {
  const { value, isReadable } = readDocument('patches', text, 'patches');
  const isConfig = isReadable && CONFIG_SECTIONS.some((section) => Object.hasOwn(value, section));
  return isConfig ? wholeConfig(text, value, base) : patchesOnly(text, objects, base);
}

const CONFIG_SECTIONS = ['sync', 'endpointSyncer', 'experimental'];

/** The names of the page are used where the text has none, so that a part of a configuration is enough. */
function wholeConfig(text: string, value: JsonObject, base: Config): EditedConfig {
  const section = ownValue(value, 'endpointSyncer');
  const syncer = isJsonObject(section) ? section : {};
  const host = ownValue(syncer, 'host');
  const hasNamespace = isJsonObject(host) && ownValue(host, 'namespace') !== undefined;
  const flags = {
    ...(ownValue(syncer, 'name') === undefined ? { name: base.name } : {}),
    ...(hasNamespace ? {} : { 'host.namespace': base.host.namespace }),
  };
  const { config, problems } = parseConfig(
    { text, file: 'patches' },
    { env: {}, flags, checks: CONFIG_CHECKS },
  );
  return { ...(config === undefined ? {} : { config }), patchList: undefined, problems };
}

function patchesOnly(text: string, objects: readonly KubeObject[], base: Config): EditedConfig {
  const patchList =
    objects.flatMap((object) => PATCHED_KINDS.filter(({ resource }) => resource.kind === object.kind)).at(0)
      ?.configKey ?? 'endpoints';
  const checks: ConfigChecks = {
    ...CONFIG_CHECKS,
    checkPatch: (patch) => CONFIG_CHECKS.checkPatch(patch, patchList),
  };
  const { patches, problems } = parsePatchFile({ text, file: 'patches' }, checks);
  const { endpoints, endpointSlices } = base.sync;
  const sync = {
    ...base.sync,
    endpoints: { ...endpoints, patches: [] },
    endpointSlices: { ...endpointSlices, patches: [] },
    [patchList]: { enabled: true, patches },
  };
  const isValid = !problems.some(({ severity }) => severity === 'error');
  return { ...(isValid ? { config: { ...base, sync } } : {}), patchList, problems };
}
