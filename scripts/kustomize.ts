/** The files of `deploy/kustomize`, generated from the rendered Helm chart. */

import { parseAllDocuments, stringify } from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json.ts';

/** Placeholders for the name of the virtual cluster and its host namespace. */
export const KUSTOMIZE_NAME = 'my-vcluster';
export const KUSTOMIZE_NAMESPACE = 'team-a';

/** Renders the chart with `--set` values. */
export type RenderChart = (values: readonly string[]) => Promise<string>;

/** Path below `deploy/kustomize` → text. The base contains the objects that both overlays share. */
export async function kustomizeFiles(render: RenderChart): Promise<ReadonlyMap<string, string>> {
  const name = `config.endpointSyncer.name=${KUSTOMIZE_NAME}`;
  const deployment = objectsOf(await render([name, 'fullnameOverride=endpoint-syncer']));
  const sidecar = objectsOf(await render([name, 'fullnameOverride=endpoint-syncer', 'sidecar=true']));
  const inBoth = new Set([...deployment.keys()].filter((key) => deployment.get(key) === sidecar.get(key)));
  const [base, ...overlays] = [
    new Map([...deployment].filter(([key]) => inBoth.has(key))),
    new Map([...deployment].filter(([key]) => !inBoth.has(key))),
    new Map([...sidecar].filter(([key]) => !inBoth.has(key))),
  ];
  return new Map([
    ...folder('base', base ?? new Map(), []),
    ...folder('overlays/deployment', overlays[0] ?? new Map(), ['../../base']),
    ...folder('overlays/sidecar', overlays[1] ?? new Map(), ['../../base']),
  ]);
}

/** `role.yaml` → text of one object, without what only Helm uses: hooks, labels, the checksum that restarts the Pods. */
function objectsOf(text: string): Map<string, string> {
  const objects = parseAllDocuments(text).map((document) => {
    const annotations = ['spec', 'template', 'metadata', 'annotations'];
    if (document.hasIn([...annotations, 'checksum/config'])) document.deleteIn(annotations);
    return document.toJSON() as JsonValue;
  });
  return new Map(
    objects
      .filter(isJsonObject)
      .filter((object) => !isHook(object))
      .map((object) => [`${fileName(object)}.yaml`, stringify(withoutHelm(object))]),
  );
}

function isHook({ metadata }: JsonObject): boolean {
  const annotations = isJsonObject(metadata) ? metadata['annotations'] : undefined;
  return isJsonObject(annotations) && 'helm.sh/hook' in annotations;
}

function fileName({ kind, metadata }: JsonObject): string {
  const name = isJsonObject(metadata) ? metadata['name'] : undefined;
  if (typeof kind !== 'string' || typeof name !== 'string') throw new Error('the chart rendered no object');
  const suffix = name.replace(/^endpoint-syncer-?/u, '');
  return `${kind.toLowerCase()}${suffix === '' ? '' : `-${suffix}`}`;
}

const HELM_LABELS = new Set(['helm.sh/chart', 'app.kubernetes.io/managed-by']);

function withoutHelm(object: JsonObject): JsonObject {
  const { metadata } = object;
  const labels = isJsonObject(metadata) ? metadata['labels'] : undefined;
  if (!isJsonObject(metadata) || !isJsonObject(labels)) return object;
  const kept = Object.entries(labels).filter(([key]) => !HELM_LABELS.has(key));
  return { ...object, metadata: { ...metadata, labels: Object.fromEntries(kept) } };
}

function folder(
  path: string,
  objects: ReadonlyMap<string, string>,
  bases: readonly string[],
): [string, string][] {
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [...bases, ...objects.keys()],
  };
  const note = '# Generated from charts/endpoint-syncer: node scripts/write-kustomize.ts\n';
  return [
    [`${path}/kustomization.yaml`, `${note}${stringify(kustomization)}`],
    ...[...objects].map(([name, text]): [string, string] => [`${path}/${name}`, text]),
  ];
}
