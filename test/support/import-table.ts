/** The folders that each folder may import, besides itself. */
export const IMPORT_TABLE: Record<string, readonly string[]> = {
  base: [],
  kube: ['base'],
  config: ['base', 'kube'],
  apiserver: ['base', 'kube'],
  'access-keys': ['apiserver', 'config', 'kube', 'base'],
  'embedded-cluster': ['apiserver', 'kube', 'base'],
  syncer: ['config', 'kube', 'base'],
  fleet: ['syncer', 'config', 'kube', 'base'],
  cli: ['access-keys', 'embedded-cluster', 'apiserver', 'fleet', 'syncer', 'config', 'kube', 'base'],
  main: ['cli', 'base'],
};
