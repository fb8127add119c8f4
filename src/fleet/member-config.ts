/** The configuration of one member: the defaults of the fleet, below the values of its vCluster and the ConfigMap that overlays them. Pure. */

import { isJsonObject, ownValue, type JsonObject } from '../base/json.ts';
import type { ConfigProblem } from '../base/errors.ts';
import type { Config } from '../syncer/config/config.ts';
import { readDocument } from '../config-file/document.ts';
import { type ConfigPath, errorAtKey, type Finding } from '../config-file/finding.ts';
import type { ConfigText } from '../shared-config/layers.ts';
import type { Override } from '../config-file/overrides.ts';
import { parseSync } from '../syncer/config/parse.ts';
import { SYNC_FIELDS } from '../syncer/config/schema.ts';
import { SHARED_KEYS, SYNCED_KEYS } from '../syncer/kinds/synced-kinds.ts';
import { describeProblem } from '../config-file/source-file.ts';
import { withoutHeading } from '../shared-config/vcluster-values.ts';
import type { NamespacedName } from '../kube/object.ts';
import { accessSecret } from './vcluster.ts';

/** What the members of a fleet have in common. */
export interface MemberRules {
  readonly defaults: JsonObject;
  /** The access of the fleet to the host, with the fleet's own namespace; '' if it has none. */
  readonly host: Config['host'];
  /** Of a command about one member: it wins over everything else. */
  readonly commandLine?: readonly Override[] | undefined;
}

export interface MemberTexts {
  readonly values: ConfigText;
  readonly overlay: ConfigText | undefined;
}

export interface MemberSources extends MemberRules, MemberTexts {
  readonly vcluster: NamespacedName;
}

export type MemberConfig =
  | { readonly config: Config; readonly warnings: readonly ConfigProblem[] }
  | { readonly config: undefined; readonly invalid: string };

export function memberConfig(sources: MemberSources): MemberConfig {
  const { vcluster, values, overlay = { text: '', file: '' }, defaults, commandLine = [] } = sources;
  const written = readDocument(overlay.file, overlay.text).value;
  const own = ownValue(written, 'endpointSyncer');
  const settings = isJsonObject(own) ? own : {};
  const { config, problems, locate } = parseSync(
    overlay,
    {
      isStart: true,
      overrides: [
        ...unset(defaults, settings, ['endpointSyncer']),
        ...fixed(sources).map(([path, value]) => ({ path, value, origin: 'the fleet' })),
        ...commandLine,
      ],
    },
    { ...values, text: withoutHeading(values.text) },
  );
  const refused = [
    ...settingsOfFleet(written, settings),
    ...(config === undefined ? [] : [...notHere(config), ...longPatches(config)]),
  ];
  const errors = [
    ...problems.filter(({ severity }) => severity === 'error'),
    ...refused.map((finding) => locate(finding)),
  ];
  if (config === undefined || errors.length > 0)
    return { config: undefined, invalid: errors.map((problem) => describeProblem(problem)).join('; ') };
  return { config: { ...config, defaults: {}, name: vcluster.name }, warnings: problems };
}

const PLAIN_VALUES = `sync: {toHost: {${SHARED_KEYS.map((key) => `${key}: {enabled: false}`).join(', ')}}}`;

/** Of a vCluster of which the values are not known. Undefined if the defaults are invalid, which the loader rejects. */
export function plainMemberConfig(sources: Omit<MemberSources, 'values' | 'overlay'>): Config | undefined {
  return memberConfig({ ...sources, values: { text: PLAIN_VALUES, file: '' }, overlay: undefined }).config;
}

/** What no member chooses for itself. */
function fixed({ vcluster, host }: MemberSources): readonly (readonly [ConfigPath, Override['value']])[] {
  const at = (...path: string[]): ConfigPath => ['endpointSyncer', ...path];
  return [
    [at('name'), vcluster.name],
    [at('virtual'), { secret: accessSecret(vcluster).name }],
    [at('host'), { ...host, namespace: vcluster.namespace }],
    [at('leaderElection', 'enabled'), true],
  ];
}

/** The leaves of `defaults` that `over` does not have. */
function unset(defaults: JsonObject, over: JsonObject, path: ConfigPath): Override[] {
  return Object.entries(defaults).flatMap(([key, value]) => {
    const other = ownValue(over, key) ?? null;
    const here = [...path, key];
    if (isJsonObject(value) && (isJsonObject(other) || other === null))
      return unset(value, isJsonObject(other) ? other : {}, here);
    return other === null ? [{ path: here, value, origin: 'endpointSyncer.defaults of the fleet' }] : [];
  });
}

/** `sandbox` bounds what the expressions of one member may take from the others. */
function settingsOfFleet(written: JsonObject, settings: JsonObject): Finding[] {
  const others = Object.keys(settings).filter((key) => !SYNC_FIELDS.includes(key) || key === 'sandbox');
  return [
    ...others.map((key) =>
      errorAtKey(
        ['endpointSyncer', key],
        'is not a setting of a member: the configuration of the fleet has it',
      ),
    ),
    ...(Object.hasOwn(written, 'managementApi')
      ? [errorAtKey(['managementApi'], 'is not a section of a member: the fleet serves the API')]
      : []),
  ];
}

/** The identity of a fleet may write in the namespaces of all its members, so none of them chooses host namespaces. */
function notHere({ sync }: Config): Finding[] {
  if (sync.namespaces.kind === 'single') return [];
  const path =
    sync.namespaces.kind === 'mappings'
      ? ['sync', 'toHost', 'namespaces', 'enabled']
      : ['experimental', 'multiNamespaceMode', 'enabled'];
  const message =
    'a fleet syncs into the namespace of the vCluster only: run endpoint-syncer beside this vCluster instead, and remove the label that selects it';
  return [errorAtKey(path, message)];
}

/** The longest ones take some 40 ms to compile, in which nothing else runs, and run on each object. */
const PATCHES_CHARS_MAX = 32 * 1024;

function longPatches({ sync }: Config): Finding[] {
  const chars = JSON.stringify(SYNCED_KEYS.map((key) => sync[key].patches)).length;
  const key = SYNCED_KEYS.find((one) => sync[one].patches.length > 0);
  if (key === undefined || chars <= PATCHES_CHARS_MAX) return [];
  const message = `the patches of a member have ${chars} characters as JSON, more than ${PATCHES_CHARS_MAX}: shorten them`;
  return [errorAtKey(['sync', 'toHost', key, 'patches'], message)];
}
