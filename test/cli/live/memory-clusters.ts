/** Both clusters in memory: lists of objects that are read as a snapshot, and writes as API servers store them. */

import { parseConfig } from '../../../src/cli/config/parse.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import type { Change } from '../../../src/syncer/rehearsal/rehearsal.ts';
import type { KindSnapshot, Snapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { objectKey, SECRETS, type KubeObject } from '../../../src/kube/object.ts';
import { SYNCABLE_RESOURCES } from '../../../src/syncer/kinds/synced-kinds.ts';
import { kindPolicy, asReferencedKind } from '../../../src/syncer/references/referenced-kind.ts';

export interface MemoryClusters {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

export function configOf(text: string): Config {
  const { config, problems } = parseConfig({ text, file: 'config.yaml' }, { env: {}, flags: {} });
  if (config === undefined) throw new Error(JSON.stringify(problems));
  return config;
}

export function snapshotOf({ virtual, host }: MemoryClusters, config: Config): Snapshot {
  const ofKind = (kind: string): KindSnapshot => ({
    virtual: virtual.filter((object) => object.kind === kind),
    host: host.filter((object) => object.kind === kind),
  });
  const secrets = asReferencedKind(SECRETS, SECRETS, kindPolicy(config.sync));
  return {
    config,
    kinds: SYNCABLE_RESOURCES.map((resource) => ({ resource, ...ofKind(resource.kind) })),
    services: ofKind('Service'),
    referenced: [{ kind: secrets, ...ofKind(SECRETS.kind) }],
    closedNamespaces: new Map(),
    unreadNamespaces: new Set(),
    owner: undefined,
    identity: { uid: 'same', known: 'same', isAdopted: false, lease: undefined },
    unreadable: [],
  };
}

let version = 0;

/** The clusters after these changes. */
export function applied(clusters: MemoryClusters, changes: readonly Change[]): MemoryClusters {
  const result = { virtual: [...clusters.virtual], host: [...clusters.host] };
  for (const { cluster, before, after } of changes) {
    const isSame = (object: KubeObject, other: KubeObject | undefined): boolean =>
      other !== undefined && object.kind === other.kind && objectKey(object) === objectKey(other);
    result[cluster] = result[cluster].filter((object) => !isSame(object, before) && !isSame(object, after));
    if (after !== undefined) result[cluster].push(stored(after, before));
  }
  return result;
}

/** With the fields that an API server sets. */
export function stored(object: KubeObject, before?: KubeObject): KubeObject {
  version += 1;
  const uid = before?.metadata.uid ?? object.metadata.uid ?? `uid-${version}`;
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(version) } };
}
