/** The configurations that a simulated daemon runs under, as settings that a history can change. */

import type { Config } from '../../../src/syncer/config/config.ts';
import { validConfig } from '../../cli/config/setup.ts';
import {
  HOST_NAMESPACE,
  MAPPED_NAMESPACE,
  MAPPED_VIRTUAL_NAMESPACE,
  OWNER_NAME,
  VCLUSTER,
  type NameSettings,
} from '../world/names.ts';
import type { BesidePlural } from '../world/vcluster-syncer.ts';

export interface Settings extends NameSettings {
  readonly isPatched: boolean;
  readonly areEndpointsSynced: boolean;
  readonly areSlicesSynced: boolean;
  readonly areServicesSynced: boolean;
  readonly hasReferences: boolean;
  readonly hasLeaderElection: boolean;
  readonly hasOwner: boolean;
  readonly requiresService: boolean;
  /** A copy that another client deletes takes its virtual object along. */
  readonly deletesVirtual: boolean;
  /** What vCluster's values enable: it may run beside the daemon, which is forced to start. */
  readonly syncedByVcluster: readonly BesidePlural[];
}

/** Endpoints alone, patched; tests name what else they have. */
export const PLAIN: Settings = {
  isPatched: true,
  areEndpointsSynced: true,
  areSlicesSynced: false,
  areServicesSynced: false,
  hasReferences: false,
  hasLeaderElection: false,
  hasOwner: false,
  requiresService: false,
  deletesVirtual: false,
  syncedByVcluster: [],
  isMapped: false,
  naming: 'short',
};

/** The patches, with what they do in the words of the naive model. */
export const TEAM = 'example.com/team';
export const FORWARD = 'example.com/forward';
/** Annotations whose values name a Secret, which is synced to the host, and a ConfigMap, which is not. */
export const SECRET = 'example.com/secret';
export const CONFIG = 'example.com/config';

const ANNOTATION_PATCHES: readonly string[] = [
  `{path: 'metadata.annotations["${TEAM}"]', expression: '"team-" + value', reverseExpression: 'value.replace(/^team-/, "")'}`,
  `{path: 'metadata.annotations["${FORWARD}"]', expression: '"[" + value + "]"'}`,
];
/** A hostname of Endpoints or slices. */
const HOSTNAME_PATCH = (path: string): string =>
  `{path: '${path}', expression: 'value + "-x"', reverseExpression: 'value.replace(/-x$/, "")'}`;
/** What a patch of Services adds to their ports. */
export const PORT_OFFSET = 1000;
const SERVICE_PATCHES: readonly string[] = [
  `{path: 'spec.ports[*].port', expression: 'value + ${PORT_OFFSET}', reverseExpression: 'value - ${PORT_OFFSET}'}`,
  `{path: 'spec.externalName', expression: '"host." + value'}`,
];
const REFERENCE_PATCHES: readonly string[] = [
  `{path: 'metadata.annotations["${SECRET}"]', reference: {apiVersion: v1, kind: Secret}}`,
  `{path: 'metadata.annotations["${CONFIG}"]', reference: {apiVersion: v1, kind: ConfigMap}}`,
];

/** Below `sync.toHost`. */
const KEYS = { endpoints: 'endpoints', endpointslices: 'endpointSlices' } as const;

const parsed = new Map<string, Config>();

export function simConfig(settings: Settings): Config {
  const text = textOf(settings);
  const config = parsed.get(text) ?? validConfig(text);
  parsed.set(text, config);
  const syncedByVcluster = settings.syncedByVcluster.map((plural) => KEYS[plural]);
  return syncedByVcluster.length === 0 ? config : { ...config, sync: { ...config.sync, syncedByVcluster } };
}

function textOf(settings: Settings): string {
  const { isPatched, hasReferences, isMapped, hasOwner } = settings;
  const patches = (...content: readonly string[]): string =>
    [
      ...(isPatched ? [...ANNOTATION_PATCHES, ...content] : []),
      ...(hasReferences ? REFERENCE_PATCHES : []),
    ].join(', ');
  return `
sync:
  toHost:
    endpoints:
      enabled: ${settings.areEndpointsSynced}
      patches: [${patches(HOSTNAME_PATCH('subsets[*].addresses[*].hostname'))}]
    endpointSlices:
      enabled: ${settings.areSlicesSynced}
      patches: [${patches(HOSTNAME_PATCH('endpoints[*].hostname'))}]
    services:
      enabled: ${settings.areServicesSynced}
      patches: [${patches(...SERVICE_PATCHES)}]
    secrets: {enabled: true}
    configMaps: {enabled: false}
    namespaces:
      enabled: ${isMapped}
      mappings: {byName: ${isMapped ? `{${MAPPED_VIRTUAL_NAMESPACE}: ${MAPPED_NAMESPACE}}` : '{}'}}
endpointSyncer:
  name: ${VCLUSTER}
  host: {namespace: ${HOST_NAMESPACE}}
  services: sync
  requireService: ${settings.requiresService}
  onHostDelete: ${settings.deletesVirtual ? 'deleteVirtual' : 'recreate'}
  references: {naming: ${settings.naming}}
  leaderElection: {enabled: ${settings.hasLeaderElection}}
  ${hasOwner ? `owner: {apiVersion: v1, kind: ConfigMap, name: ${OWNER_NAME}}` : ''}
`;
}
