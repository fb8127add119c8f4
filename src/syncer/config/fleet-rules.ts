/** Rules of `endpointSyncer.fleet`: which namespaces it may have, and which settings belong to a single virtual cluster. */

import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { textPattern } from '../../base/text-pattern.ts';
import {
  errorAtKey,
  errorAtValue,
  type Fields,
  type Finding,
  pathOf,
  warningAtKey,
} from '../../config-file/finding.ts';

const SECTION = 'endpointSyncer';
const FLEET = `${SECTION}.fleet`;
const INCLUDE = `${FLEET}.namespaces.include`;
const EXCLUDE = `${FLEET}.namespaces.exclude`;

/** What a fleet shares, or is about the fleet itself. */
const OF_THE_PROCESS: ReadonlySet<string> = new Set(['host', 'http', 'log', 'fleet', 'defaults']);

/** Settings of one virtual cluster, and where a fleet has them from. */
const OF_ONE_CLUSTER: Readonly<Record<string, string>> = {
  name: 'each member has the name of its vCluster',
  virtual: 'each member has the access in the Secret vc-NAME of its vCluster',
  vclusterConfig: 'each member has the values in the Secret vc-config-NAME of its vCluster',
};

export function isFleet(fields: Fields): boolean {
  return fields.isOn(`${FLEET}.enabled`);
}

/** For commands about one virtual cluster. */
export function refusedFleet(fields: Fields): Finding[] {
  if (!isFleet(fields)) return [];
  const message =
    'this is the configuration of a fleet, and the command is for one virtual cluster: pass a configuration of that cluster alone';
  return [errorAtValue(pathOf(`${FLEET}.enabled`), message)];
}

export const FLEET_NAMESPACES = {
  schema: {
    anyOf: [
      { not: { required: ['enabled'], properties: { enabled: { const: true } } } },
      {
        required: ['namespaces'],
        properties: { namespaces: { required: ['include'], properties: { include: { minItems: 1 } } } },
      },
    ],
  } satisfies JsonObject,
  check(fields: Fields): Finding[] {
    if (!isFleet(fields)) return unusedDefaults(fields);
    return [...namespaceFindings(fields), ...settingsOfOneCluster(fields)];
  },
};

/** Of `endpointSyncer` as a whole, for editors: the loader requires the name by its own schema. */
export const NAME_OR_FLEET: JsonObject = {
  required: [],
  anyOf: [
    { required: ['name'] },
    {
      required: ['fleet'],
      properties: { fleet: { required: ['enabled'], properties: { enabled: { const: true } } } },
    },
  ],
};

function unusedDefaults(fields: Fields): Finding[] {
  const name = `${SECTION}.defaults`;
  if (Object.keys(fields.object(name)).length === 0) return [];
  return [warningAtKey(pathOf(name), `has no effect while ${FLEET}.enabled is false`)];
}

function namespaceFindings(fields: Fields): Finding[] {
  const include = textsAt(fields, INCLUDE);
  if (include.length === 0) {
    const message =
      'is required: the host namespaces in which vClusters are looked for, such as ["team-a"] or ["team-*"]';
    return [errorAtKey(pathOf(INCLUDE), message)];
  }
  const own = fields.text(`${SECTION}.host.namespace`);
  const exclude = textsAt(fields, EXCLUDE);
  if (own === '' || !isFleetNamespace(own, { include, exclude })) return [];
  const message = `includes the fleet's own namespace "${own}" (${SECTION}.host.namespace), whose Secrets are not those of virtual clusters: add it to ${EXCLUDE}`;
  return [errorAtValue(pathOf(INCLUDE), message)];
}

/** `namespaces` has names and patterns. */
export function isFleetNamespace(
  name: string,
  { include, exclude }: { readonly include: readonly string[]; readonly exclude: readonly string[] },
): boolean {
  const isIn = (patterns: readonly string[]): boolean =>
    patterns.some((pattern) => textPattern(pattern)(name));
  return isIn(include) && !isIn(exclude);
}

function settingsOfOneCluster(fields: Fields): Finding[] {
  const settings = Object.keys(fields.object(SECTION)).filter((key) => !OF_THE_PROCESS.has(key));
  const sections = ['sync', 'experimental'].filter((section) => isJsonObject(fields.value(section)));
  const leaderElection = `${SECTION}.defaults.leaderElection.enabled`;
  return [
    ...settings.map((key) => {
      const why = OF_ONE_CLUSTER[key];
      const message = why === undefined ? `move it to ${SECTION}.defaults` : `remove it, ${why}`;
      return errorAtKey([SECTION, key], `is not a setting of a fleet: ${message}`);
    }),
    ...sections.map((section) =>
      errorAtKey(
        [section],
        'is not a section of a fleet: what is synced is in the values of each vCluster, or in its ConfigMap endpoint-syncer-NAME',
      ),
    ),
    ...(fields.isOn(leaderElection, true)
      ? []
      : [
          errorAtValue(
            pathOf(leaderElection),
            'cannot be false: each member of a fleet is synced by the process that holds its Lease',
          ),
        ]),
  ];
}

function textsAt(fields: Fields, name: string): readonly string[] {
  const value = fields.value(name);
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
