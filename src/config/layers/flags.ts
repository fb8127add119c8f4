/** The flags that set a field of our own sections: the same words in kebab case. Plain data, so that `--help` needs no schema. */

export type FlagSection = 'endpointSyncer' | 'managementApi';

export interface FlagDefinition {
  readonly section: FlagSection;
  /** Dotted path below the section. No two sections have one in common. */
  readonly field: string;
  /** Without the dashes. */
  readonly flag: string;
  readonly type: 'text' | 'number' | 'switch';
  /** What the value is, in the help; '' for a switch. */
  readonly value: string;
  readonly help: string;
  /** The only texts that it takes. */
  readonly words?: readonly string[];
  /** Fields whose values in the file are ignored if this flag is given, because they belong to what it replaces. */
  readonly replaces?: readonly string[];
}

/** `value` names the value in the help, or lists the only words that it may be: `short|long`. */
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
  ['host.kubeconfig', 'text', 'file', 'kubeconfig of the host cluster'],
  ['host.context', 'text', 'name', 'context in the kubeconfig of the host cluster'],
  ['host.namespace', 'text', 'name', 'namespace of the virtual cluster on the host'],
  ['owner.apiVersion', 'text', 'version', 'apiVersion of the object that owns the copies'],
  ['owner.kind', 'text', 'kind', 'kind of the object that owns the copies'],
  ['owner.name', 'text', 'name', 'name of the object that owns the copies'],
  ['workers', 'number', 'count', 'objects synced at the same time'],
  ['vclusterConfig', 'text', 'file', "vCluster's own values file, which the configuration file overlays"],
  ['services', 'text', 'vcluster|sync', 'which program copies Services to the host'],
  ['requireService', 'switch', '', 'sync only Endpoints that have a Service'],
  ['onHostDelete', 'text', 'recreate|deleteVirtual', 'action when another client deletes a copy on the host'],
  ['createNamespaces', 'switch', '', 'create host namespaces that are missing'],
  ['references.naming', 'text', 'short|long', 'format of the names that references get'],
  ['references.onlyLabelled', 'text', 'label', 'import only host objects with this label, KEY or KEY=VALUE'],
  ['sandbox.expressionTimeout', 'text', 'duration', 'time for one expression'],
  ['sandbox.batchTimeout', 'text', 'duration', 'time for one batch of expressions'],
  ['sandbox.memory', 'text', 'size', 'memory of the sandbox above its baseline'],
  ['sandbox.memoBytes', 'text', 'size', 'memory for cached results, 0 for none'],
  ['leaderElection.enabled', 'switch', '', 'let only one of several replicas sync at a time'],
  [
    'leaderElection.leaseDuration',
    'text',
    'duration',
    'time after which a lease that is not renewed expires',
  ],
  ['leaderElection.renewDeadline', 'text', 'duration', 'time in which the leader must renew its lease'],
  ['leaderElection.retryPeriod', 'text', 'duration', 'time between two attempts'],
  ['http.bindAddress', 'text', 'host:port', 'address of /healthz, /readyz and /metrics'],
  ['log.level', 'text', 'debug|info|warn|error|silent', 'least severe level that is written'],
  ['log.format', 'text', 'json|pretty|auto', 'auto: pretty on a terminal, else json'],
];

const MANAGEMENT_ROWS: readonly FlagRow[] = [
  ['bindAddress', 'text', 'host:port', 'where the key and token API is served'],
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
  ['tokenTtl.default', 'text', 'duration', 'lifetime of a token that requests none'],
  ['tokenTtl.max', 'text', 'duration', 'maximum lifetime of a token'],
  ['delegatedAuth', 'switch', '', 'take tokens of the host cluster too, with the rights they have there'],
  ['bootstrapKeyFile', 'text', 'file', "the first administrator's key: read if it exists, else written"],
];

/** A kubeconfig flag replaces contexts and Secret of the file, and a Secret flag replaces its kubeconfig. */
const REPLACES: Readonly<Record<string, readonly string[]>> = {
  'virtual.kubeconfig': ['virtual.context', 'virtual.secret', 'virtual.server'],
  'virtual.secret': ['virtual.context', 'virtual.kubeconfig', 'virtual.server'],
  'host.kubeconfig': ['host.context'],
};

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
    flag: kebab(field),
    type,
    value,
    help,
    ...(value.includes('|') ? { words: value.split('|') } : {}),
    ...(replaces === undefined ? {} : { replaces }),
  };
}

/** `host.bindAddress` → `host-bind-address`. */
function kebab(field: string): string {
  return field.replaceAll('.', '-').replaceAll(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`);
}
