/** Pods, as a server without nodes supports them. */

import { metadataOf } from '../../kube/object.ts';
import {
  isJsonObject,
  type JsonObject,
  numberField,
  objectField,
  objectList,
  text,
} from '../../base/json.ts';
import { requiredValue, type FieldError } from '../../apiserver/status.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { subdomainProblem } from '../../kube/names.ts';

export function pods(types: TypeTable): ResourceDefinition {
  const spec = (field: string) => (object: JsonObject) => text(objectField(object, 'spec'), field);
  const status = (field: string) => (object: JsonObject) => text(objectField(object, 'status'), field);
  return defineResource({
    group: '',
    version: 'v1',
    kind: 'Pod',
    plural: 'pods',
    singular: 'pod',
    isNamespaced: true,
    shortNames: ['po'],
    categories: ['all'],
    schema: types.get('Pod'),
    checkName: subdomainProblem,
    hasStatus: true,
    hasGeneration: true,
    strategy: { returnsDeleted: true },
    selectableFields: {
      'spec.nodeName': spec('nodeName'),
      'spec.restartPolicy': spec('restartPolicy'),
      'spec.schedulerName': spec('schedulerName'),
      'spec.serviceAccountName': spec('serviceAccountName'),
      'status.phase': status('phase'),
      'status.podIP': status('podIP'),
      'status.nominatedNodeName': status('nominatedNodeName'),
    },
    columns: [
      NAME_COLUMN,
      textColumn('Ready', 'Ready containers of all containers.', readyText),
      textColumn('Status', 'The status of the Pod.', statusText),
      textColumn('Restarts', 'Number of container restarts.', (object) => String(restarts(object))),
      AGE_COLUMN,
      textColumn('IP', 'IP address of the Pod.', (object) => status('podIP')(object) || '<none>', 1),
      textColumn(
        'Node',
        'The node that the Pod runs on.',
        (object) => spec('nodeName')(object) || '<none>',
        1,
      ),
      textColumn(
        'Nominated Node',
        'The node that the Pod is nominated to run on.',
        (object) => status('nominatedNodeName')(object) || '<none>',
        1,
      ),
      textColumn('Readiness Gates', 'Additional readiness conditions.', () => '<none>', 1),
    ],
    applyDefaults,
    prepare: (next, previous) => {
      if (!previous) next['status'] = { phase: 'Pending', qosClass: 'BestEffort' };
    },
    validate,
    gracePeriodSeconds,
  });
}

const GRACE_SECONDS = 30;
/** A thousand years: the end of the period is a date. */
const GRACE_SECONDS_MAX = 31_557_600_000;

/** No kubelet runs a Pod that has no node or has finished, so it is removed immediately. A pending deletion keeps its period. */
function gracePeriodSeconds(object: JsonObject, asked: number | undefined): number {
  const phase = text(objectField(object, 'status'), 'phase');
  const podSpec = objectField(object, 'spec');
  if (text(podSpec, 'nodeName') === '' || phase === 'Failed' || phase === 'Succeeded') return 0;
  const wanted = numberField(podSpec, 'terminationGracePeriodSeconds', GRACE_SECONDS);
  const seconds = asked ?? numberField(metadataOf(object), 'deletionGracePeriodSeconds', wanted);
  return Math.min(seconds, GRACE_SECONDS_MAX);
}

function applyDefaults(object: JsonObject): void {
  const spec = objectField(object, 'spec');
  for (const container of [...objectList(spec, 'containers'), ...objectList(spec, 'initContainers')]) {
    for (const port of objectList(container, 'ports')) port['protocol'] ??= 'TCP';
    container['terminationMessagePath'] ??= '/dev/termination-log';
    container['terminationMessagePolicy'] ??= 'File';
    const image = text(container, 'image');
    const isFixed = image.includes('@') || /:(?!latest$)[^/]+$/.test(image);
    container['imagePullPolicy'] ??= isFixed ? 'IfNotPresent' : 'Always';
  }
  spec['restartPolicy'] ??= 'Always';
  spec['terminationGracePeriodSeconds'] ??= GRACE_SECONDS;
  spec['dnsPolicy'] ??= 'ClusterFirst';
  spec['securityContext'] ??= {};
  spec['schedulerName'] ??= 'default-scheduler';
  spec['enableServiceLinks'] ??= true;
  object['spec'] = spec;
}

function validate(object: JsonObject): FieldError[] {
  const containers = objectList(objectField(object, 'spec'), 'containers');
  if (containers.length === 0) return [requiredValue('spec.containers')];
  return containers.flatMap((container, index) =>
    ['name', 'image']
      .filter((field) => text(container, field) === '')
      .map((field) => requiredValue(`spec.containers[${index}].${field}`)),
  );
}

function readyText(object: JsonObject): string {
  const all = objectList(objectField(object, 'spec'), 'containers').length;
  const ready = containerStatuses(object).filter((container) => container['ready'] === true).length;
  return `${ready}/${all}`;
}

function containerStatuses(object: JsonObject): JsonObject[] {
  return objectList(objectField(object, 'status'), 'containerStatuses');
}

function restarts(object: JsonObject): number {
  return containerStatuses(object).reduce(
    (sum, container) => sum + numberField(container, 'restartCount'),
    0,
  );
}

function statusText(object: JsonObject): string {
  if (text(metadataOf(object), 'deletionTimestamp') !== '') return 'Terminating';
  const status = objectField(object, 'status');
  const waiting = containerStatuses(object)
    .map((container) => objectField(container, 'state')['waiting'])
    .find(isJsonObject);
  return (waiting && text(waiting, 'reason')) || text(status, 'reason') || text(status, 'phase');
}
