/** The folders that each folder may import, besides itself. */
export const IMPORT_TABLE: Record<string, readonly string[]> = {
  base: [],
  kube: ['base'],
  'config-file': ['base'],
  'shared-config': ['config-file', 'kube', 'base'],
  apiserver: ['base', 'kube'],
  'access-keys': ['apiserver', 'config-file', 'kube', 'base'],
  'embedded-cluster': ['apiserver', 'kube', 'base'],
  syncer: ['shared-config', 'config-file', 'kube', 'base'],
  fleet: ['syncer', 'shared-config', 'config-file', 'kube', 'base'],
  cli: [
    'access-keys',
    'embedded-cluster',
    'apiserver',
    'fleet',
    'syncer',
    'shared-config',
    'config-file',
    'kube',
    'base',
  ],
  main: ['cli', 'base'],
};
