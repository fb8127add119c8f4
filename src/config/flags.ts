/**
 * Settings from the command line and the environment, which override the file. The flags are the scalars of `endpointSyncer` and `managementApi`, named
 * after them in kebab case. Plain data that is generated from the schema, so that `--help` does not load it.
 */

import { InvariantError } from '../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn } from '../base/json.ts';
import type { ConfigPath } from './finding.ts';
import FIELDS from './flag-fields.json' with { type: 'json' };
import type { ConfigFlags } from './types.ts';

type FlagSection = 'endpointSyncer' | 'managementApi';

export interface FlagDefinition {
  readonly section: FlagSection;
  /** Dotted path below the section. No two sections have one in common. */
  readonly field: string;
  /** Without the dashes. */
  readonly flag: string;
  readonly type: 'text' | 'number' | 'switch';
  /** The placeholder of the value in the help. */
  readonly value: string;
  readonly help: string;
  /** The allowed values. */
  readonly words?: readonly string[];
  /** Whose help lists it: every command's, a daemon's, or none. What is set once is in the file, and `--set` sets any field for one run. */
  readonly shownBy: 'all' | 'daemons' | 'none';
  /** Fields whose values in the file are ignored if this flag is given, because they belong to what it replaces. */
  readonly replaces?: readonly string[];
}

type Listing = readonly [value: string, help: string];

/** Which virtual cluster, and how to reach both: in the help of every command. */
const ACCESS: Readonly<Record<string, Listing>> = {
  name: ['name', 'name of the virtual cluster'],
  'virtual.kubeconfig': ['file', 'kubeconfig of the virtual cluster'],
  'virtual.context': ['name', 'context in the kubeconfig of the virtual cluster'],
  'virtual.secret': ['name', 'Secret in the host namespace with the kubeconfig of the virtual cluster'],
  'virtual.server': ['url', 'URL of the virtual API server, instead of the one in its kubeconfig'],
  'host.kubeconfig': ['file', 'kubeconfig of the host cluster'],
  'host.context': ['name', 'context in the kubeconfig of the host cluster'],
  'host.namespace': ['name', 'namespace of the virtual cluster on the host'],
  vclusterConfig: ['file', "vCluster's own values file, which the configuration file overlays"],
  'log.level': ['word', 'minimum level of the log'],
};

/** What differs from one process to the next on a machine. */
const OF_A_PROCESS: Readonly<Record<string, Listing>> = {
  'virtual.adopt': ['', 'take the copies on the host to be of this virtual cluster'],
  workers: ['count', 'number of objects that are synced concurrently'],
  'http.bindAddress': ['host:port', 'address of /healthz, /readyz and /metrics'],
  bindAddress: ['host:port', 'address of the key and token API'],
  dataDir: ['folder', 'folder for database, signing keys and certificates'],
  bootstrapKeyFile: ['file', "file with the first administrator's key; created if it does not exist"],
};

/** A kubeconfig flag replaces contexts and Secret of the file, and a Secret flag replaces its kubeconfig. */
const REPLACES: Readonly<Record<string, readonly string[]>> = {
  'virtual.kubeconfig': ['virtual.context', 'virtual.secret', 'virtual.server'],
  'virtual.secret': ['virtual.context', 'virtual.kubeconfig', 'virtual.server'],
  'host.kubeconfig': ['host.context'],
};

/** Flags that are not named after their fields. */
const NAMED: Readonly<Record<string, string>> = { 'virtual.adopt': 'adopt' };

/** Whether `run` serves the API is no choice of one run, and `api` always does. */
const IN_FILE_ONLY = /^managementApi\.(?:enabled$|auditLog\.)/u;

export const FLAGS: readonly FlagDefinition[] = FIELDS.filter(({ path }) => !IN_FILE_ONLY.test(path)).map(
  flagOf,
);

/** The fields of a section that have a flag. */
export function flagFields(section: FlagSection): string[] {
  return FLAGS.filter((flag) => flag.section === section).map(({ field }) => field);
}

function flagOf({ path, type, words }: (typeof FIELDS)[number]): FlagDefinition {
  const section = path.startsWith('managementApi.') ? 'managementApi' : 'endpointSyncer';
  const field = path.slice(section.length + 1);
  const [value, help] = ACCESS[field] ?? OF_A_PROCESS[field] ?? ['value', ''];
  const replaces = REPLACES[field];
  return {
    section,
    field,
    flag: NAMED[field] ?? kebab(field),
    type: type === 'boolean' ? 'switch' : type === 'integer' ? 'number' : 'text',
    value: words === undefined ? value : 'word',
    help,
    shownBy: field in ACCESS ? 'all' : field in OF_A_PROCESS ? 'daemons' : 'none',
    ...(words !== undefined && { words }),
    ...(replaces !== undefined && { replaces }),
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
