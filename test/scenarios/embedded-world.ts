/** Worlds of two embedded clusters, each world with its own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AccessRequest, Authorizer } from '../../src/apiserver/request/request-info.ts';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { gadgets } from './gadgets.ts';
import { World, type ClusterName, type WorldClusters, type NewWorld, type Rule } from './world.ts';

export const newEmbeddedWorld: NewWorld = async (options) => World.open(await embeddedClusters(), options);

const ADMIN_TOKEN = 'admin-token';
const USER_TOKEN = 'user-token';
const USER = 'syncer';

async function embeddedClusters(): Promise<WorldClusters> {
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-embedded-'));
  const [virtual, host] = await Promise.all([open('virtual', directory), open('host', directory)]);
  const side = (cluster: ClusterName): Opened => (cluster === 'virtual' ? virtual : host);
  return {
    kind: 'embedded',
    virtual,
    host,
    async userKubeconfig(cluster, rules) {
      const opened = side(cluster);
      opened.rules = rules;
      return opened.cluster.kubeconfig.replaceAll(ADMIN_TOKEN, USER_TOKEN);
    },
    // What only real clusters have is tested on them.
    stop: (component) => Promise.reject(new Error(`an embedded ${component} cannot be stopped`)),
    start: (component) => Promise.reject(new Error(`an embedded ${component} cannot be started`)),
    async [Symbol.asyncDispose]() {
      await Promise.all([virtual.cluster[Symbol.asyncDispose](), host.cluster[Symbol.asyncDispose]()]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface Opened {
  readonly cluster: EmbeddedCluster;
  readonly kubeconfigPath: string;
  /** What the second user may do. */
  rules: readonly Rule[];
}

async function open(name: ClusterName, directory: string): Promise<Opened> {
  const kubeconfigPath = join(directory, `${name}.kubeconfig`);
  const rules: Rule[] = [];
  const authorizer: Authorizer = {
    authorize: (user, request) => ({
      isAllowed: user.name !== USER || opened.rules.some((rule) => allows(rule, request)),
      reason: '',
    }),
  };
  const cluster = await startEmbeddedCluster({
    name,
    token: ADMIN_TOKEN,
    users: { [USER_TOKEN]: USER },
    authorizer,
    kinds: [gadgets()],
  });
  const opened: Opened = { cluster, kubeconfigPath, rules };
  writeFileSync(kubeconfigPath, cluster.kubeconfig);
  return opened;
}

/** As RBAC decides: every user may review their own rights and read discovery. */
function allows(rule: Rule, { verb, group, resource, namespace, path }: AccessRequest): boolean {
  if (path !== '' || group === 'authorization.k8s.io') return true;
  return (
    rule.verbs.includes(verb) &&
    rule.apiGroups.includes(group) &&
    rule.resources.includes(resource) &&
    (rule.namespace === '' || rule.namespace === namespace)
  );
}
