/** The flags of `keys token`. */

import { Option, type Command } from 'commander';
import { httpsUrl, secondsIn } from './option-values.ts';
import type { ConnectionOptions } from './keys-connection.ts';
import { addScopeOptions, type ScopeOptions } from './keys-scope.ts';

export interface TokenOptions extends ScopeOptions, ConnectionOptions {
  readonly output: 'token' | 'kubeconfig' | 'exec-credential';
  /** Seconds. */
  readonly ttl?: number;
  readonly cache: boolean;
  readonly clusterServer?: string;
  readonly clusterCertificateAuthority?: string;
  readonly clusterName: string;
}

const CLUSTER_GROUP = 'Cluster (for -o kubeconfig):';

export function addTokenOptions(command: Command): void {
  command
    .addOption(
      new Option(
        '-o, --output <format>',
        'the token, a kubeconfig that renews it, or the output of an exec plugin',
      )
        .choices(['token', 'kubeconfig', 'exec-credential'])
        .default('token'),
    )
    .addOption(
      new Option(
        '--ttl <duration>',
        'lifetime of the token, such as 1h; default: that of the server',
      ).argParser(secondsIn),
    )
    .option('--no-cache', 'issue a new token even if the cache of exec-credential has an unexpired one');
  addScopeOptions(command, 'Scope (default: that of the access key; options may be repeated):');
  const add = (flags: string, help: string): Option => new Option(flags, help).helpGroup(CLUSTER_GROUP);
  command.addOption(add('--cluster-server <url>', 'API server of the cluster').argParser(httpsUrl));
  command.addOption(
    add('--cluster-certificate-authority <file>', 'PEM certificates to verify the API server with'),
  );
  command.addOption(add('--cluster-name <name>', 'name in the kubeconfig').default('cluster'));
}
