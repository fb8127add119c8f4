/** `rbac`: the roles that a configuration needs, as manifests or as values of vCluster's chart. */

import { type Command, Option } from 'commander';
import { stringify } from 'yaml';
import type { JsonObject } from '../../base/json.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/types.ts';
import type { ClusterName } from '../../kube/types.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from '../configuration/config-options.ts';
import { reportConfigError } from '../output/config-report.ts';
import { rbacDocuments, vclusterValues } from './rbac-documents.ts';
import { neededGrants, openKinds } from './rbac-rules.ts';

interface RbacOptions {
  readonly cluster?: ClusterName;
  readonly as: 'role' | 'clusterrole' | 'vcluster-values';
  readonly serviceAccount: string;
  readonly output: string;
}

export function define(command: Command, exit: (code: number) => void): void {
  addConfigOptions(command, ALL_FIELDS);
  command
    .addOption(
      new Option('--cluster <cluster>', 'only the roles of one cluster').choices(['host', 'virtual']),
    )
    .addOption(
      new Option('--as <form>', "Roles where possible, only ClusterRoles, or values of vCluster's chart")
        .choices(['role', 'clusterrole', 'vcluster-values'])
        .default('role'),
    )
    .option('--service-account <name>', 'name of the ServiceAccount in each cluster', 'endpoint-syncer')
    .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
    .action(async (options: RbacOptions) => exit(await run(command, options)));
}

async function run(command: Command, options: RbacOptions): Promise<number> {
  let config: Config;
  try {
    ({ config } = await loadConfig(loaderInput(command)));
  } catch (error) {
    return reportConfigError(error);
  }
  const problem = usageProblem(config, options);
  if (problem !== undefined) {
    process.stderr.write(`error: ${problem}\n`);
    return 2;
  }
  const open = openKinds(config);
  if (open.length > 0) {
    process.stderr.write(
      `note: a patch reads the kind of a reference from the object; add rights for the kinds that it may name: ${open.join(', ')}\n`,
    );
  }
  const others = otherNamespaces(config);
  if (options.as === 'vcluster-values' && others.length > 0) {
    process.stderr.write(
      `note: vCluster's chart grants no rights in namespace "${others.join('", "')}": apply the Role for it that --as role prints\n`,
    );
  }
  process.stdout.write(print(config, options));
  return 0;
}

/** Namespaces of the host, other than the host namespace of the virtual cluster, in which the configuration needs rights. */
function otherNamespaces(config: Config): readonly string[] {
  return neededGrants(config)
    .filter(
      ({ cluster, namespace }) => cluster === 'host' && !['', config.host.namespace].includes(namespace),
    )
    .map(({ namespace }) => namespace);
}

function usageProblem({ host }: Config, { as, cluster }: RbacOptions): string | undefined {
  if (host.namespace === '') {
    return 'the host namespace of the virtual cluster is not known; set --host-namespace or endpointSyncer.host.namespace';
  }
  return as === 'vcluster-values' && cluster === 'virtual'
    ? "the values of vCluster's chart grant no rights in the virtual cluster; omit --cluster, or use --as role"
    : undefined;
}

function print(config: Config, { as: form, cluster, serviceAccount, output }: RbacOptions): string {
  const hostNamespace = config.host.namespace;
  const grants = neededGrants(config).filter((grant) => cluster === undefined || grant.cluster === cluster);
  if (form === 'vcluster-values') return printOne(vclusterValues(grants, hostNamespace), output);
  const documents = rbacDocuments(grants, { serviceAccount, hostNamespace, form });
  if (output === 'json') return printOne({ apiVersion: 'v1', kind: 'List', items: [...documents] }, output);
  return documents.map((document) => printOne(document, output)).join('---\n');
}

function printOne(value: JsonObject, output: string): string {
  if (output === 'json') return `${JSON.stringify(value, null, 2)}\n`;
  return stringify(value, { aliasDuplicateObjects: false });
}
