/** The part of vCluster's own file format that this program reads: `sync.toHost` and `experimental.multiNamespaceMode`. */

import * as z from 'zod';
import { flag, openSection, section } from '../../config-file/schema-fields.ts';
import type { SyncableKind } from '../kinds/kind.ts';
import { services } from '../kinds/services.ts';
import { SHARED_KINDS, type SharedKey } from '../kinds/synced-kinds.ts';
import { patchSchema } from '../patch/patch-schema.ts';
import { NAMESPACE_MAPPINGS } from './rules.ts';

const patches = z
  .array(patchSchema)
  .prefault([])
  .meta({ description: 'Changes on top of the built-in translation, applied in this order.' });

/** Only `enabled` is read; the other keys of such a section are for vCluster. */
function kind(fallback: boolean) {
  return openSection('', { enabled: flag('Whether this kind is synced to the host.', fallback) });
}

const namespaces = openSection('', {
  enabled: flag('Whether virtual namespaces are mapped to host namespaces.', false),
  mappingsOnly: flag('Whether only namespaces with a mapping are synced.', false),
  mappings: openSection('', {
    byName: z.record(z.string(), z.string()).prefault({}).meta({
      description:
        'Virtual namespace (or PREFIX-*) to host namespace (or PREFIX-*); ${name} is the virtual cluster.',
    }),
  }),
}).meta(NAMESPACE_MAPPINGS.schema);

function sharedKind({ description, isEnabledByDefault }: SyncableKind) {
  return section('', { enabled: flag(description, isEnabledByDefault), patches });
}

const sharedKinds = Object.fromEntries(SHARED_KINDS.map((one) => [one.key, sharedKind(one)])) as Record<
  SharedKey,
  ReturnType<typeof sharedKind>
>; // an entry for each

const toHost = openSection('', {
  ...sharedKinds,
  namespaces,
  customResources: z
    .record(z.string(), z.looseObject({ enabled: flag('Whether this custom resource is synced.', false) }))
    .prefault({})
    .meta({ description: 'Custom resources by PLURAL.GROUP.' }),
  services: openSection('', {
    enabled: flag(services.description, services.isEnabledByDefault),
    patches: patches.meta({
      description:
        'As for Endpoints, on paths of Services. They are applied with endpointSyncer.services: sync only; otherwise they are for vCluster.',
    }),
  }),
  secrets: kind(true),
  configMaps: kind(true),
  pods: kind(true),
  persistentVolumeClaims: kind(true),
  ingresses: kind(false),
  networkPolicies: kind(false),
  persistentVolumes: kind(false),
  podDisruptionBudgets: kind(false),
  priorityClasses: kind(false),
  resourceClaims: kind(false),
  resourceClaimTemplates: kind(false),
  serviceAccounts: kind(false),
  storageClasses: kind(false),
  volumeSnapshots: kind(false),
  volumeSnapshotContents: kind(false),
});

export const syncSchema = openSection(
  "vCluster's own section; keys that are not listed here may be present.",
  { toHost },
);

export const experimentalSchema = openSection(
  "vCluster's own section; keys that are not listed here may be present.",
  {
    multiNamespaceMode: openSection('', {
      enabled: flag(
        'vCluster 0.25 and older: each virtual namespace gets a generated host namespace.',
        false,
      ),
    }),
  },
);
