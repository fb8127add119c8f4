/**
 * Settings from the command line and the environment, which override the file: the flags of `endpointSyncer` and `managementApi`, named after
 * their fields in kebab case. Plain data, so that `--help` loads no schema.
 */

import { InvariantError } from '../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn } from '../base/json.ts';
import type { ConfigPath } from './finding.ts';
import type { ConfigFlags } from './types.ts';

type FlagSection = 'endpointSyncer' | 'managementApi';

export interface FlagDefinition {
  readonly section: FlagSection;
  /** Dotted path below the section. No two sections have one in common. */
  readonly field: string;
  /** Without the dashes. */
  readonly flag: string;
  readonly type: 'text' | 'number' | 'switch';
  /** The placeholder of the value in the help; '' for a switch. */
  readonly value: string;
  readonly help: string;
  /** The allowed values. */
  readonly words?: readonly string[];
  /** Whose help lists it: every command's, a daemon's, or none. What is set once is in the file, and `--set` sets any field for one run. */
  readonly shownBy: 'all' | 'daemons' | 'none';
  /** Fields whose values in the file are ignored if this flag is given, because they belong to what it replaces. */
  readonly replaces?: readonly string[];
}

/** `value` is the placeholder in the help, or the allowed values: `short|long`. */
type FlagRow = readonly [field: string, type: FlagDefinition['type'], value: string, help: string];

const SYNCER_ROWS: readonly FlagRow[] = [
  ['name', 'text', 'name', 'name of the virtual cluster'],
  ['virtual.kubeconfig', 'text', 'file', 'kubeconfig of the virtual cluster'],
  ['virtual.context', 'text', 'name', 'context in the kubeconfig of the virtual cluster'],
  [
    'virtual.secret',
    'text',
    'name',
    'Secret in the host namespace with the kubeconfig of the virtual cluster',
  ],
  ['virtual.server', 'text', 'url', 'URL of the virtual API server, instead of the one in its kubeconfig'],
  ['virtual.adopt', 'switch', '', 'take the copies on the host to be of this virtual cluster'],
  ['host.kubeconfig', 'text', 'file', 'kubeconfig of the host cluster'],
  ['host.context', 'text', 'name', 'context in the kubeconfig of the host cluster'],
  ['host.namespace', 'text', 'name', 'namespace of the virtual cluster on the host'],
  ['owner.apiVersion', 'text', 'version', 'apiVersion of the object that owns the copies'],
  ['owner.kind', 'text', 'kind', 'kind of the object that owns the copies'],
  ['owner.name', 'text', 'name', 'name of the object that owns the copies'],
  ['workers', 'number', 'count', 'number of objects that are synced concurrently'],
  ['vclusterConfig', 'text', 'file', "vCluster's own values file, which the configuration file overlays"],
  ['services', 'text', 'vcluster|sync', 'which program copies Services to the host'],
  ['besideVcluster', 'text', 'refuse|force', "action if vCluster's own values sync the same kind"],
  [
    'patches.missingPaths',
    'text',
    'skip|create',
    'what an expression does where the last key of its path is missing',
  ],
  ['patches.onError', 'text', 'object|path', 'what a failing patch stops: its object, or only its path'],
  ['requireService', 'switch', '', 'sync only Endpoints that have a Service'],
  ['onHostDelete', 'text', 'recreate|deleteVirtual', 'action when another client deletes a copy on the host'],
  ['createNamespaces', 'switch', '', 'create host namespaces that are missing'],
  ['references.naming', 'text', 'short|long', 'format of the names that reference patches write'],
  ['references.onlyLabelled', 'text', 'label', 'import only host objects with this label, KEY or KEY=VALUE'],
  ['sandbox.expressionTimeout', 'text', 'duration', 'maximum processor time of one expression'],
  ['sandbox.batchTimeout', 'text', 'duration', 'maximum processor time of one batch of expressions'],
  ['sandbox.memory', 'text', 'size', 'memory that the sandbox process may use above its baseline'],
  ['sandbox.memoBytes', 'text', 'size', 'size of the cache of expression results; 0 disables it'],
  ['leaderElection.enabled', 'switch', '', 'elect a leader among the replicas; only the leader syncs'],
  [
    'leaderElection.leaseDuration',
    'text',
    'duration',
    'time after which a lease that is not renewed expires',
  ],
  ['leaderElection.renewDeadline', 'text', 'duration', 'time within which the leader must renew its lease'],
  [
    'leaderElection.retryPeriod',
    'text',
    'duration',
    'interval between attempts to acquire or renew the lease',
  ],
  ['http.bindAddress', 'text', 'host:port', 'address of /healthz, /readyz and /metrics'],
  ['log.level', 'text', 'debug|info|warn|error|silent', 'minimum level of the log'],
  ['log.format', 'text', 'json|pretty|auto', 'auto: pretty on a terminal, else json'],
];

const MANAGEMENT_ROWS: readonly FlagRow[] = [
  ['bindAddress', 'text', 'host:port', 'address of the key and token API'],
  [
    'tls.certFile',
    'text',
    'file',
    'PEM certificate chain; a self-signed certificate is generated in dataDir if omitted',
  ],
  ['tls.keyFile', 'text', 'file', 'PEM private key of the certificate'],
  ['dataDir', 'text', 'folder', 'folder for database, signing keys and certificates'],
  ['store.driver', 'text', 'sqlite|memory|kubernetes', 'storage driver'],
  ['store.namespace', 'text', 'name', 'host namespace of the Secrets of the kubernetes driver'],
  ['issuer', 'text', 'url', 'issuer of tokens: the URL at which clusters reach the API'],
  ['maxTtl', 'text', 'duration', 'maximum lifetime of a key, 0s for no maximum'],
  ['tokenTtl.default', 'text', 'duration', 'default lifetime of a token'],
  ['tokenTtl.max', 'text', 'duration', 'maximum lifetime of a token'],
  ['delegatedAuth', 'switch', '', 'also accept tokens of the host cluster, with their permissions there'],
  [
    'bootstrapKeyFile',
    'text',
    'file',
    "file with the first administrator's key; created if it does not exist",
  ],
];

/** A kubeconfig flag replaces contexts and Secret of the file, and a Secret flag replaces its kubeconfig. */
const REPLACES: Readonly<Record<string, readonly string[]>> = {
  'virtual.kubeconfig': ['virtual.context', 'virtual.secret', 'virtual.server'],
  'virtual.secret': ['virtual.context', 'virtual.kubeconfig', 'virtual.server'],
  'host.kubeconfig': ['host.context'],
};

/** Which virtual cluster, and how to reach both. */
const ACCESS: readonly string[] = [
  'name',
  'virtual.kubeconfig',
  'virtual.context',
  'virtual.secret',
  'virtual.server',
  'host.kubeconfig',
  'host.context',
  'host.namespace',
  'vclusterConfig',
  'log.level',
];

/** What differs from one process to the next on a machine. */
const OF_A_PROCESS: readonly string[] = [
  'virtual.adopt',
  'workers',
  'http.bindAddress',
  'bindAddress',
  'dataDir',
  'bootstrapKeyFile',
];

/** Flags that are not named after their fields. */
const NAMED: Readonly<Record<string, string>> = { 'virtual.adopt': 'adopt' };

export const FLAGS: readonly FlagDefinition[] = [
  ...SYNCER_ROWS.map((row) => flagOf('endpointSyncer', row)),
  ...MANAGEMENT_ROWS.map((row) => flagOf('managementApi', row)),
];

/** The fields of a section that have a flag. */
export function flagFields(section: FlagSection): string[] {
  return FLAGS.filter((flag) => flag.section === section).map(({ field }) => field);
}

function flagOf(section: FlagSection, [field, type, value, help]: FlagRow): FlagDefinition {
  const replaces = REPLACES[field];
  return {
    section,
    field,
    flag: NAMED[field] ?? kebab(field),
    type,
    value,
    help,
    shownBy: ACCESS.includes(field) ? 'all' : OF_A_PROCESS.includes(field) ? 'daemons' : 'none',
    ...(value.includes('|') ? { words: value.split('|') } : {}),
    ...(replaces === undefined ? {} : { replaces }),
  };
}

/** `host.bindAddress` → `host-bind-address`. */
function kebab(field: string): string {
  return field.replaceAll('.', '-').replaceAll(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`);
}

// Settings from the command line and the environment, which override the file.

export interface Override {
  readonly path: ConfigPath;
  /** Undefined removes the field. */
  readonly value: JsonValue | undefined;
  /** Where it was set, for messages: `--workers`, `VCLUSTER_NAME`. */
  readonly origin: string;
}

/** Weakest first: environment, then flags. */
export function overridesOf(env: NodeJS.ProcessEnv, flags: ConfigFlags): Override[] {
  const overrides: Override[] = [];
  const name = env['VCLUSTER_NAME'] ?? '';
  if (name !== '') overrides.push({ path: ['endpointSyncer', 'name'], value: name, origin: 'VCLUSTER_NAME' });
  for (const field of Object.keys(flags)) {
    const definition = FLAGS.find((flag) => flag.field === field);
    if (definition === undefined) throw new InvariantError(`no flag sets the field ${field}`);
    overrides.push(...overridesOfFlag(definition, flags));
  }
  return overrides;
}

function overridesOfFlag(definition: FlagDefinition, flags: ConfigFlags): Override[] {
  const origin = `--${definition.flag}`;
  const { section } = definition;
  const path = [section, ...definition.field.split('.')];
  const replaced = (definition.replaces ?? []).filter((field) => !Object.hasOwn(flags, field));
  return [
    ...replaced.map((field) => ({ path: [section, ...field.split('.')], value: undefined, origin })),
    { path, value: typedValue(definition, flags[definition.field] ?? ''), origin },
  ];
}

/** Text that is not of the flag's type stays text, and the schema rejects it. */
function typedValue(definition: FlagDefinition, text: string): JsonValue {
  if (definition.type === 'number' && /^-?\d{1,15}$/u.test(text)) return Number(text);
  if (definition.type === 'switch' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** A copy of `value` with the overrides. An override is skipped if a parent of its path is not a mapping. */
export function applyOverrides(value: JsonObject, overrides: readonly Override[]): JsonObject {
  return overrides.reduce((result, override) => withValue(result, override.path, override.value), value);
}

function withValue(object: JsonObject, path: ConfigPath, value: JsonValue | undefined): JsonObject {
  const [step, ...rest] = path;
  if (step === undefined) return object;
  const copy: JsonObject = {};
  for (const key of Object.keys(object)) setOwn(copy, key, object[key] ?? null);
  const key = String(step);
  const below = ownValue(copy, key) ?? null;
  if (rest.length === 0) {
    if (value === undefined) delete copy[key];
    else setOwn(copy, key, value);
  } else if (isJsonObject(below) || below === null) {
    setOwn(copy, key, withValue(isJsonObject(below) ? below : {}, rest, value));
  }
  return copy;
}

/** The flag or variable that set the value at a path; undefined if the file did. */
export function originOf(path: ConfigPath, overrides: readonly Override[]): string | undefined {
  const isAt = (override: Override): boolean =>
    override.value !== undefined && override.path.every((step, index) => path[index] === step);
  return overrides.findLast(isAt)?.origin;
}
