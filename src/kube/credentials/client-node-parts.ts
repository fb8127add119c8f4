/**
 * The kubeconfig types and the authenticators of client-node. The package's entry point also loads the whole generated API, 90 MiB of
 * resident memory. These modules are not entry points; test/private-imports.test.ts fails when they move.
 */

export {
  newClusters,
  newContexts,
  type Cluster,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';

/** Each is loaded when a kubeconfig asks for it. */
export const loadAuthenticator = {
  gcp: async () => new (await import('@kubernetes/client-node/dist/gcp_auth.js')).GoogleCloudPlatformAuth(),
  azure: async () => new (await import('@kubernetes/client-node/dist/azure_auth.js')).AzureAuth(),
};
