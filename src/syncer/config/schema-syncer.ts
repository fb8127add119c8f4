/** `endpointSyncer`: how this program runs. */

import * as z from 'zod';
import { ordered } from '../../config-file/rule.ts';
import {
  choice,
  count,
  duration,
  flag,
  optionalMatch,
  path,
  section,
  show,
  size,
  text,
  texts,
  url,
  withRule,
} from '../../config-file/schema-fields.ts';
import { DNS_LABEL_OR_EMPTY, DNS_LABEL_RULE } from '../../kube/names.ts';
import { host, http, log, vclusterConfig } from '../../shared-config/shared.ts';
import { excludableAnnotation, excludableLabel } from './excluded-keys.ts';
import { FLEET_NAMESPACES, NAME_OR_FLEET } from './fleet-rules.ts';
import { labelKey, labelRequirement, labelValue, objectName, requiredLabel } from './kube-fields.ts';
import { ONE_VIRTUAL_KUBECONFIG, OWNER_API_VERSIONS, VALUES_OF_OPERATOR, WHOLE_OWNER } from './rules.ts';

const MI = 2 ** 20;
const GI = 2 ** 30;
const MINUTE_MS = 60_000;

const virtual = withRule(
  section('Access to the virtual cluster.', {
    kubeconfig: path(
      'Path of the kubeconfig of the virtual cluster. Empty: in-cluster, then KUBECONFIG, then ~/.kube/config.',
    ),
    context: text('Context in that kubeconfig. Empty: its current context.'),
    secret: objectName(
      'Secret in the host namespace with the kubeconfig, under the key config, value, kubeconfig, kubeconfig.yaml or admin.conf; vCluster writes vc-NAME, which is used if it exists and no kubeconfig of another cluster than the host is configured or where kubectl looks. Instead of kubeconfig.',
    ),
    server: url(
      'URL of the API server, such as https://my-vcluster.team-a. Empty: the one in the kubeconfig. The CA and the credentials of the kubeconfig are used.',
      'https?',
      'the URL of an API server such as https://my-vcluster.team-a',
    ),
    adopt: flag(
      'Whether the copies on the host are taken to be of this virtual cluster although they were made from objects of another one, so that those without an object are deleted.',
      false,
    ),
  }),
  ONE_VIRTUAL_KUBECONFIG,
);

const owner = section(
  "Object in the host namespace that owns the copies, so that they are deleted with it. Default: vCluster's Service NAME, if it exists. Not in multi-namespace modes.",
  {
    apiVersion: text(
      'apiVersion of the owner; not needed for Pod, Service, StatefulSet and other built-in kinds.',
    ),
    kind: text('Kind of the owner, such as StatefulSet. Empty: copies have no owner.', 'Service'),
    name: objectName('Name of the owner.'),
  },
)
  .meta(WHOLE_OWNER.schema)
  .transform(({ apiVersion, kind, name }) => ({
    apiVersion: apiVersion === '' ? (OWNER_API_VERSIONS.get(kind) ?? '') : apiVersion,
    kind,
    name,
  }));

const sandbox = withRule(
  section('Limits for patch expressions.', {
    expressionTimeout: duration(
      'Maximum processor time of one expression for one value.',
      { minMs: 1, maxMs: MINUTE_MS },
      '100ms',
    ),
    batchTimeout: duration(
      'Maximum processor time of one expression for all its values in one object.',
      { minMs: 10, maxMs: 5 * MINUTE_MS },
      '1s',
    ),
    memory: size(
      'Resident memory that the sandbox process may use above its baseline.',
      { min: 16 * MI, max: 16 * GI },
      '128Mi',
    ),
    memoBytes: size(
      'Size of the cache of expression results; 0 disables it.',
      { min: 0, max: 16 * GI },
      '64Mi',
    ),
    localEvaluation: flag(
      'Whether expressions without loops and functions of their own are evaluated without a sandbox process, with the same results.',
      true,
    ),
  }),
  ordered('expressionTimeout', 'batchTimeout'),
);

const leaderElection = withRule(
  withRule(
    section('Leader election between replicas by a Lease.', {
      enabled: flag('Whether the replicas elect a leader; only the leader syncs.', false),
      leaseDuration: duration(
        'Time after which a lease that is not renewed expires.',
        { minMs: 1_000, maxMs: 60 * MINUTE_MS },
        '15s',
      ),
      renewDeadline: duration(
        'Time within which the leader must renew its lease.',
        { minMs: 500, maxMs: 60 * MINUTE_MS },
        '10s',
      ),
      retryPeriod: duration(
        'Interval between attempts to acquire or renew the lease.',
        { minMs: 100, maxMs: 60 * MINUTE_MS },
        '2s',
      ),
    }),
    ordered('renewDeadline', 'leaseDuration'),
  ),
  ordered('retryPeriod', 'renewDeadline'),
);

const SERVICE_MODES = z.enum(['vcluster', 'sync']);

const services = z
  .union(
    [
      SERVICE_MODES,
      z.strictObject({
        mode: SERVICE_MODES,
        allow: z
          .array(z.enum(['externalIPs', 'loadBalancerIP']))
          .default([])
          .meta({
            description:
              'Fields with addresses that tenants choose, which are not copied otherwise: a tenant could take traffic of the host with them.',
          }),
      }),
    ],
    { error: (issue) => `must be one of ${SERVICE_MODES.options.join(', ')}, found ${show(issue.input)}` },
  )
  .prefault('vcluster')
  .transform((value) => (typeof value === 'string' ? { mode: value, allow: [] } : value))
  .meta({
    description:
      'Which program copies Services to the host: vcluster, or sync for this program. {mode: sync, allow: [FIELD]} also copies fields with addresses that tenants choose.',
  });

/** Annotations that belong to one cluster: agents on both sides that keep them up to date would overwrite each other without end. */
export const EXCLUDED_ANNOTATIONS = [
  'control-plane.alpha.kubernetes.io/leader',
  'field.cattle.io/publicEndpoints',
  'kubectl.kubernetes.io/last-applied-configuration',
];

const metadata = section('Labels and annotations that each cluster keeps for itself.', {
  excludeAnnotations: z.array(excludableAnnotation).default(EXCLUDED_ANNOTATIONS).meta({
    description:
      'Annotations that are not copied in either direction: keys, or PREFIX/* for all keys with a prefix.',
  }),
  excludeLabels: z.array(excludableLabel).default([]).meta({
    description:
      'Labels that are not copied in either direction: keys, or PREFIX/* for all keys with a prefix.',
  }),
});

function labelSelector(description: string, of: string) {
  const requirement = z.strictObject({
    key: labelKey.meta({ description: 'Key of a label.' }),
    operator: z
      .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
      .meta({ description: 'In and NotIn need values, the others have none.' }),
    values: z.array(labelValue).default([]).meta({ description: 'Values of the label.' }),
  });
  return section(description, {
    matchLabels: z
      .record(labelKey, labelValue)
      .default({})
      .meta({ description: `Labels with their values, all of which ${of} needs.` }),
    matchExpressions: z
      .array(withRule(requirement, VALUES_OF_OPERATOR))
      .default([])
      .meta({ description: `Further requirements, all of which ${of} has to meet.` }),
  });
}

const selector = labelSelector(
  'Labels of the virtual objects that are synced. The copy of an object that no longer matches is deleted. Default: all objects.',
  'an object',
);

const namespaces = section(
  'Virtual namespaces whose objects are synced. Copies of objects in others are deleted.',
  {
    include: texts('Virtual namespaces whose objects are synced; * stands for any text. Empty: all.'),
    exclude: texts('Virtual namespaces whose objects are not synced; * stands for any text.'),
  },
);

const namespacePattern = z
  .string()
  .regex(
    /^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$/u,
    'must be the name of a namespace, in which * may stand for any text',
  );

const fleet = section('One process for many vClusters of a host.', {
  enabled: flag(
    'Whether this process syncs every selected vCluster of the host. What the others have in common is in endpointSyncer.defaults, and what differs in their own values.',
    false,
  ),
  namespaces: section(
    'Host namespaces in which vClusters are looked for. With names alone, rights in these namespaces are enough; a pattern needs rights in the whole cluster.',
    {
      include: z
        .array(namespacePattern)
        .default([])
        .meta({ description: 'Host namespaces with vClusters; * stands for any text. Required.' }),
      exclude: z
        .array(namespacePattern)
        .default([])
        .meta({ description: 'Host namespaces whose vClusters are not synced; * stands for any text.' }),
    },
  ),
  selector: labelSelector(
    'Labels of the StatefulSet or Deployment of a vCluster that is synced. Empty: endpoint-syncer/enabled=true.',
    'the workload of a vCluster',
  ),
  limits: section(
    'What one member and one namespace may use. A member with more is limited: it is not synced, and its copies stay, until it has less. No member raises its own limits.',
    {
      objects: count(
        'Objects in the caches of one member, those of the host included.',
        { min: 100, max: 10_000_000 },
        50_000,
      ),
      cacheBytes: size('Size of these caches, approximately.', { min: MI, max: 64 * GI }, '128Mi'),
      hostRequests: count(
        'Requests of one member in flight on the host, its writes included; the others wait.',
        { min: 1, max: 256 },
        4,
      ),
      hostWrites: count(
        'Writes of one member to the host per second, after ten times as many at once.',
        { min: 1, max: 10_000 },
        100,
      ),
      membersPerNamespace: count(
        'Members in one host namespace; of more vClusters, the youngest are limited.',
        { min: 1, max: 1000 },
        20,
      ),
      sandboxes: count(
        'Processes for the expressions of all members together, one of them for expressions that had to be stopped. The members of a host namespace share one, and may share it with those of others.',
        { min: 2, max: 64 },
        3,
      ),
    },
  ),
}).meta(FLEET_NAMESPACES.schema);

const NAME = 'Name of the virtual cluster, as vCluster was installed. Required.';

/** What decides how one virtual cluster is synced. */
export const syncFields = {
  owner,
  workers: count('Number of objects that are synced concurrently.', { min: 1, max: 256 }, 10),
  services,
  besideVcluster: choice(
    "What a start does if vCluster's own values sync the same kind: refuse, or force to start nevertheless, and leave the deletion of copies to vCluster.",
    ['refuse', 'force'],
    'refuse',
  ),
  metadata,
  patches: section('How patches are applied.', {
    missingPaths: choice(
      'What an `expression` does where the last key of its path is missing in an existing map: it is skipped, or runs with `valueExists` false and creates the key.',
      ['skip', 'create'],
      'skip',
    ),
    onError: choice(
      'What a failing patch stops: only its path, where both sides keep what they have, or the sync of its object.',
      ['object', 'path'],
      'path',
    ),
  }),
  selector,
  namespaces,
  requireService: flag('Whether only Endpoints that have a Service are synced, as vCluster does.', false),
  onHostDelete: choice(
    'When another client deletes a copy on the host: re-create it, or delete the virtual object as vCluster does; of Endpoints and EndpointSlices only if the host has a Service without a selector in front of the copy. What goes with its owner or namespace on the host is re-created.',
    ['recreate', 'deleteVirtual'],
    'recreate',
  ),
  createNamespaces: flag('Whether missing host namespaces are created.', false),
  references: section('', {
    naming: choice(
      "Format of the names that `reference` patches write. In the long form, imports have the names of vCluster's own copies: only for kinds that no vCluster syncs.",
      ['short', 'long'],
      'short',
    ),
    refuseSecrets: z.array(z.string().min(1)).prefault([]).meta({
      description:
        'Host Secrets that are not imported, in addition to the built-in ones: patterns of their names, types or data keys; * matches any text.',
    }),
    onlyLabelled: labelRequirement(
      'Label that a host object needs to be imported, KEY or KEY=VALUE. Empty: none.',
    ),
  }),
  sandbox,
  leaderElection,
};

const fields = z.strictObject({
  name: requiredLabel(NAME, 'the name of the virtual cluster, here, with --name or in VCLUSTER_NAME'),
  virtual,
  host,
  vclusterConfig,
  ...syncFields,
  http,
  log,
  fleet,
  defaults: section(
    'What every vCluster of a fleet gets, unless its ConfigMap endpoint-syncer-NAME sets it.',
    syncFields,
  ),
});

export const syncerSchema = fields
  .prefault({} as never) // `name` is missing then, which is the error to report
  .meta({ description: 'How endpoint-syncer runs.', ...NAME_OR_FLEET });

/** For a fleet, and for the key and token API alone, which need no virtual cluster of their own. */
export const namelessSyncerSchema = fields
  .extend({ name: optionalMatch(NAME, DNS_LABEL_OR_EMPTY, DNS_LABEL_RULE) })
  .prefault({});
