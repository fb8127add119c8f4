/** vCluster's own values: the defaults, the merge over them, values as Helm prints them, and what people pass in their place. */

import { readFileSync } from 'node:fs';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../base/json.ts';
import { mergeConfig } from '../config-file/merge.ts';
import { OWN_SECTIONS } from './shared.ts';
import {
  errorAtKey,
  formatPath,
  pathOf,
  warningAtKey,
  type ConfigPath,
  type Finding,
  Fields,
} from '../config-file/finding.ts';
import { nearestWord } from '../base/suggest.ts';

let parsedDefaults: JsonObject | undefined;

/** The default values of a vCluster 0.37 configuration file, frozen: parsed once, because a fleet reads the values of many vClusters. */
export function vclusterDefaults(): JsonObject {
  return (parsedDefaults ??= parseDefaults());
}

function parseDefaults(): JsonObject {
  const text = readFileSync(new URL('./vcluster-defaults.json', import.meta.url), 'utf8');
  return JSON.parse(text, (_, value: unknown) => Object.freeze(value)) as JsonObject; // our own file
}

/** The user's configuration (without empty keys) as vCluster sees it: merged with the defaults, without the sections of this program. */
export function vclusterConfigOf(written: JsonObject): JsonObject {
  const theirs: JsonObject = {};
  for (const key of Object.keys(written)) {
    if (!OWN_SECTIONS.has(key)) setOwn(theirs, key, written[key] ?? null);
  }
  return mergeConfig(vclusterDefaults(), theirs);
}

// What is passed as values.

const HEADING = /^(?:USER-SUPPLIED|COMPUTED) VALUES:[\t ]*\r?$/mu;

/** Makes a comment of the heading that `helm get values` prints. */
export function withoutHeading(text: string): string {
  return text.replace(HEADING, (heading) => `# ${heading}`);
}

/** A text that was made from `withoutHeading(original)`, with the heading of the original. */
export function withHeadingOf(original: string, text: string): string {
  const [heading] = HEADING.exec(original) ?? [];
  return heading === undefined ? text : text.replace(`# ${heading}`, () => heading);
}

/** One error alone: a file of something else, of which nothing else is worth saying. `values` have no empty keys. */
export function valuesFindings(values: JsonObject): Finding[] {
  const helm = 'pass what "helm get values" prints';
  const wrong = otherFile(values, { expected: 'the values of vCluster', advice: helm });
  return wrong === undefined ? misspeltKeys(values) : [wrong];
}

/** A file of another program or of vCluster 0.19: what it lacks says nothing about the sync. */
export function isOtherFile(values: JsonObject): boolean {
  return otherFile(values, { expected: '', advice: '' }) !== undefined;
}

/** A file that is none of a configuration: without this, it would be one that sets nothing. With a section of this program, it is one. */
export function configurationFindings(own: JsonObject): Finding[] {
  if (Object.keys(own).some((key) => OWN_SECTIONS.has(key))) return [];
  const advice = 'pass a file with the section endpointSyncer';
  const wrong = otherFile(own, { expected: 'a configuration', advice });
  return wrong === undefined ? [] : [wrong];
}

interface ExpectedFile {
  readonly expected: string;
  /** What to do about an object in which no values are found. */
  readonly advice: string;
}

function otherFile(values: JsonObject, expected: ExpectedFile): Finding | undefined {
  return kubernetesObject(values, expected) ?? umbrellaValues(values) ?? oldValues(values);
}

function kubernetesObject(values: JsonObject, { expected, advice }: ExpectedFile): Finding | undefined {
  const [apiVersion, kind] = [ownValue(values, 'apiVersion'), ownValue(values, 'kind')];
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined;
  const path = pathOfValues(values, [], DEPTH_MAX);
  const next = path === undefined ? advice : `pass what is at ${formatPath(path)}`;
  const message =
    kind === 'Config'
      ? `this is a kubeconfig, not ${expected}: pass it with --host-kubeconfig or --virtual-kubeconfig`
      : `this is a Kubernetes object of kind ${kind}, not ${expected}: ${next}`;
  return errorAtKey(['kind'], message);
}

const DEPTH_MAX = 8;

/** Where an object has values of vCluster, as YAML or as its text. */
function pathOfValues(value: JsonValue, path: ConfigPath, depth: number): ConfigPath | undefined {
  if (typeof value === 'string')
    return /^(?:sync|controlPlane|endpointSyncer|managementApi):/mu.test(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || depth === 0) return undefined;
  if (isJsonObject(value) && path.length > 0 && isOfVcluster(value)) return path;
  for (const [key, member] of Object.entries(value)) {
    const found = pathOfValues(member, [...path, Array.isArray(value) ? Number(key) : key], depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isOfVcluster(value: JsonObject): boolean {
  const fields = new Fields(value);
  const names = ['sync.toHost', 'sync.fromHost', 'controlPlane', ...OWN_SECTIONS];
  return names.some((name) => isJsonObject(fields.value(name)));
}

/** Top-level keys that only the values of vCluster 0.19 and older have, as its `config/legacyconfig` lists them. */
const OLD_KEYS = [
  'autoDeletePersistentVolumeClaims',
  'centralAdmission',
  'coredns',
  'defaultImageRegistry',
  'embeddedEtcd',
  'fallbackHostDns',
  'globalAnnotations',
  'headless',
  'isolation',
  'k3sToken',
  'mapServices',
  'multiNamespaceMode',
  'noopSyncer',
  'openshift',
  'proLicenseSecret',
  'storage',
  'syncer',
  'workloadServiceAccount',
];

/** What they have below `vcluster`, which is also what a chart may call one that it contains. */
const OLD_VCLUSTER_KEYS = [
  'image',
  'imagePullPolicy',
  'command',
  'baseArgs',
  'extraArgs',
  'extraVolumeMounts',
  'volumeMounts',
  'env',
  'resources',
];

function oldValues(values: JsonObject): Finding | undefined {
  const fields = new Fields(values);
  const oldKeys = OLD_KEYS.filter(
    (key) => Object.hasOwn(values, key) && !Object.hasOwn(vclusterDefaults(), key),
  );
  const ofVcluster = fields.keys('vcluster').filter((key) => OLD_VCLUSTER_KEYS.includes(key));
  const [path] = [
    ...oldKeys.map((key) => [key]),
    ...ofVcluster.map((key) => ['vcluster', key]),
    ...oldKinds(fields).map((key) => ['sync', key]),
  ];
  if (path === undefined || isOfVcluster(values)) return undefined;
  const convert = 'convert them with "vcluster convert config --distro k8s -f FILE", and pass the result';
  return errorAtKey(
    path,
    `these are values of vCluster 0.19 or older, because of ${formatPath(path)}: ${convert}`,
  );
}

/** They stood below `sync`, most with a switch. */
function oldKinds(fields: Fields): string[] {
  const isOld = ([key, member]: [string, JsonValue]): boolean =>
    !SYNC_KEYS.includes(key) &&
    isJsonObject(member) &&
    (Object.hasOwn(member, 'enabled') || OLD_KINDS_WITHOUT_SWITCH.includes(key));
  return Object.entries(fields.object('sync'))
    .filter(isOld)
    .map(([key]) => key);
}

const SYNC_KEYS = ['toHost', 'fromHost'];
const OLD_KINDS_WITHOUT_SWITCH = ['configmaps', 'generic', 'nodes', 'pods', 'secrets'];

/** The key of our chart's values that has the configuration. */
const CHART_KEY = 'config';

/** {@link CHART_KEY} if these are values of our chart. */
export function chartKeyOf(values: JsonObject): string | undefined {
  return keyOfValues(values) === CHART_KEY ? CHART_KEY : undefined;
}

function umbrellaValues(values: JsonObject): Finding | undefined {
  const key = keyOfValues(values);
  if (key === undefined) return undefined;
  const [chart, check] =
    key === CHART_KEY
      ? ['the chart of this program', ', or check it with "endpoint-syncer validate"']
      : ['a chart that contains vCluster', ''];
  return errorAtKey([key], `these are values of ${chart}: pass what is below ${key} alone${check}`);
}

/** The key of a chart's values under which those of another program stand. */
function keyOfValues(values: JsonObject): string | undefined {
  if (Object.keys(values).some((key) => Object.hasOwn(vclusterDefaults(), key) || OWN_SECTIONS.has(key)))
    return undefined;
  return Object.keys(values).find((name) => {
    const member = ownValue(values, name);
    return isJsonObject(member) && isOfVcluster(member);
  });
}

/** A key that vCluster does not know, which resembles one that it does. */
function misspeltKeys(values: JsonObject): Finding[] {
  const [ours, theirs] = [new Fields(values), new Fields(vclusterDefaults())];
  return Object.entries(OTHER_KEYS).flatMap(([section, others]) => {
    const known = [...theirs.keys(section), ...others];
    return ours.keys(section).flatMap((key) => {
      const near = known.includes(key) ? undefined : nearestWord(key, known);
      if (near === undefined) return [];
      const message = `vCluster does not know this key: did you mean "${near}"?`;
      return [warningAtKey([...pathOf(section), key], message)];
    });
  });
}

/** Sections, each with the keys of vCluster that its default values leave out. */
const OTHER_KEYS = {
  '': ['external', 'global', 'plugin', 'pro', 'serviceCIDR', 'sleepMode', 'sync'],
  sync: [],
  'sync.toHost': ['customResources'],
  'sync.fromHost': ['customResources'],
  controlPlane: [],
};
