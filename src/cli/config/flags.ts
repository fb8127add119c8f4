/**
 * The flags: the scalars of `endpointSyncer` and `managementApi`, named after them in kebab case. Plain data that is generated from the schema, so that
 * `--help` does not load it.
 */

import FIELDS from './flag-fields.json' with { type: 'json' };

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

/** How both clusters are reached. A command that connects has all of them, because errors name one that helps. */
export const CONNECTION_FIELDS: readonly string[] = Object.keys(ACCESS).filter((field) =>
  /^(?:virtual|host)\.(?!namespace$)/u.test(field),
);

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

/** Whether `run` serves the API or a fleet is no choice of one run, and `api` always does. */
const IN_FILE_ONLY = /^(?:managementApi\.(?:enabled$|auditLog\.)|endpointSyncer\.(?:fleet|defaults)\.)/u;

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
