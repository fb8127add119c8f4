/** A custom resource for tests: namespaced, with a status of its own. Real clusters get a CustomResourceDefinition, embedded ones serve it. */

import { parse } from 'yaml';
import { META_TYPES, TypeTable } from '../../src/apiserver/schema/object-schema.ts';
import { defineResource, type ResourceDefinition } from '../../src/apiserver/objects/resource-definition.ts';
import { subdomainProblem } from '../../src/kube/names.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { isJsonObject, valueAt, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import type { TestCluster } from './cluster-client.ts';
import { eventually } from '../support/eventually.ts';
import { worldText } from '../support/world-file.ts';
import type { World } from './world.ts';

export function gadgets(): ResourceDefinition {
  const types = new TypeTable([
    META_TYPES,
    'example.Gadget = metadata:1! meta.ObjectMeta; spec:2 any; status:3 any; subsets:4 any',
  ]);
  return defineResource({
    group: 'example.com',
    version: 'v1',
    kind: 'Gadget',
    plural: 'gadgets',
    singular: 'gadget',
    isNamespaced: true,
    schema: types.get('example.Gadget'),
    checkName: subdomainProblem,
    hasStatus: true,
    hasGeneration: true,
    hasTypedItems: true,
  });
}

/** The reported one, and a field with the schema of Endpoints' `subsets`. */
function definition(): JsonObject {
  const reported = parse(worldText('live/crd.yaml')) as JsonObject;
  const schema = valueAt(reported, ['spec', 'versions', 0, 'schema', 'openAPIV3Schema', 'properties']);
  if (!isJsonObject(schema)) throw new Error('live/crd.yaml has no schema');
  schema['subsets'] = { 'x-kubernetes-preserve-unknown-fields': true };
  return reported;
}

/** Creates its definition in both clusters, and waits until they serve it. */
export async function serveGadgets({ clusters, virtual, host }: World): Promise<void> {
  if (clusters.kind === 'embedded') return;
  await Promise.all([define(virtual), define(host)]);
}

async function define(cluster: TestCluster): Promise<void> {
  await cluster.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition());
  await eventually(
    () => cluster.request('GET', '/apis/example.com/v1/gadgets'),
    ({ status }) => status === 200,
    { what: 'gadgets being served' },
  );
}

export function gadget(key: string, spec: JsonValue, finalizers?: string[]): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  const metadata = { namespace, name, ...(finalizers === undefined ? {} : { finalizers }) };
  return { apiVersion: 'example.com/v1', kind: 'Gadget', metadata, spec };
}
