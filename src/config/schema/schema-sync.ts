/** The part of vCluster's own file format that this program reads: `sync.toHost` and `experimental.multiNamespaceMode`. */

import * as z from 'zod';
import { NAMESPACE_MAPPINGS, ONE_MODE, WHOLE_REFERENCE } from '../rules.ts';
import { flag, openSection, section } from './schema-fields.ts';

/** An empty text counts as absent. */
function optionalText(description: string) {
  return z
    .string()
    .transform((text) => (text === '' ? undefined : text))
    .optional()
    .meta({ description });
}

const relativePath = (what: string) =>
  optionalText(`Path of the ${what}, relative to what \`path\` matched.`);

export const referenceSchema = z
  .strictObject({
    apiVersion: z
      .string()
      .regex(/^([a-z0-9.-]+\/)?[a-z0-9]([a-z0-9-]*[a-z0-9])?$/u, {
        error: 'must be VERSION or GROUP/VERSION, such as v1 or apps/v1',
      })
      .meta({ description: 'apiVersion of the referenced object, such as v1 or apps/v1.' }),
    kind: z
      .string()
      .regex(/^[A-Za-z][A-Za-z0-9]*$/u, { error: 'must be a kind, such as Secret' })
      .meta({ description: 'Kind of the referenced object, such as Secret.' }),
    apiVersionPath: relativePath('apiVersion; if it is not found, `apiVersion` is used'),
    kindPath: relativePath('kind; if it is not found, `kind` is used'),
    namePath: relativePath(
      'name, `[*].name` for each element of a list; if omitted, the matched value itself is the name',
    ),
    namespacePath: relativePath("namespace; if it is not found, the object's own namespace is used"),
  })
  .meta({
    id: 'Reference',
    description: 'The value references another object; the reference is translated.',
    ...WHOLE_REFERENCE.schema,
  });

/** One entry of `patches`. */
export const patchSchema = z
  .strictObject({
    path: z.string().meta({
      description:
        'What to change, such as metadata.annotations["example.com/key"] or subsets[*].addresses[*].ip. A filter selects elements: [?(@.name === "https")].',
      examples: [
        'metadata.annotations["example.com/key"]',
        'subsets[*].addresses[*].hostname',
        'subsets[*].ports[?(@.name === "https")].port',
        'metadata.annotations[?(@.includes("{{"))]',
      ],
    }),
    expression: optionalText(
      'JavaScript, virtual to host: `value` is the current value, the result replaces it.',
    ),
    reverseExpression: optionalText('JavaScript, host to virtual: undoes `expression`.'),
    reference: referenceSchema.optional(),
    labels: z
      .strictObject({})
      .optional()
      .meta({ description: 'Write `labels: {}`: the value is a label selector, its keys are translated.' }),
  })
  .meta({
    id: 'Patch',
    description: 'One change. Exactly one of: expression and/or reverseExpression, reference, labels.',
    ...ONE_MODE.schema,
  });

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

const toHost = openSection('', {
  endpoints: section('', { enabled: flag('Whether Endpoints are synced to the host.', true), patches }),
  endpointSlices: section('', {
    enabled: flag(
      'Whether EndpointSlices are synced to the host. Slices that a controller of the virtual cluster manages are not.',
      true,
    ),
    patches,
  }),
  namespaces,
  customResources: z
    .record(z.string(), z.looseObject({ enabled: flag('Whether this custom resource is synced.', false) }))
    .prefault({})
    .meta({ description: 'Custom resources by PLURAL.GROUP.' }),
  services: openSection('', {
    enabled: flag('Whether this kind is synced to the host.', true),
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
