/** Options of a DELETE, in its query and in its body. */

import type { JsonValue } from '../../src/base/json.ts';
import { CM, MERGE_PATCH, configMap, send } from './step.ts';
import type { Step } from './transcript.ts';

interface Deletion {
  readonly query?: string;
  readonly body?: JsonValue;
  readonly type?: string;
  readonly finalizers?: readonly string[];
}

/** A field of bytes in protobuf. All are short here, and text. */
function field(number: number, content: string): string {
  return String.fromCharCode((number << 3) | 2, content.length) + content;
}

/** `preconditions: {uid: other}` */
const IN_PROTOBUF = [
  'k8s\0',
  field(1, field(1, 'v1') + field(2, 'DeleteOptions')),
  field(2, field(2, field(1, 'other'))),
].join('');

const DELETIONS: Readonly<Record<string, Deletion>> = {
  'orphan-false': { query: '?orphanDependents=false' },
  'policy-empty': { query: '?propagationPolicy=' },
  'grace-empty': { query: '?gracePeriodSeconds=' },
  'uid-empty': { body: { preconditions: { uid: '' } } },
  'version-empty': { body: { preconditions: { resourceVersion: '' } } },
  'version-zero': { body: { preconditions: { resourceVersion: '0' } } },
  'dry-run-text': { body: { dryRun: 'All' } },
  'text-grace': { body: { gracePeriodSeconds: '5' } },
  array: { body: '[]' },
  'kind-number': { body: { kind: 5 } },
  yaml: { body: 'preconditions: {uid: other}\n', type: 'application/yaml' },
  protobuf: { body: IN_PROTOBUF, type: 'application/vnd.kubernetes.protobuf' },
  'plain-text': { body: '{}', type: 'text/plain' },
  'background-orphan': { query: '?propagationPolicy=Background', finalizers: ['orphan'] },
  'background-held': { query: '?propagationPolicy=Background', finalizers: ['foregroundDeletion', 'a.b/c'] },
};

export const DELETE_STEPS: readonly Step[] = [
  ...Object.entries(DELETIONS).flatMap(([id, { query = '', body, type, finalizers = [] }]) => {
    const name = `delete-${id}`;
    return [
      send.POST(`${name}-made`, CM, configMap(name, { metadata: { name, finalizers: [...finalizers] } })),
      send.DELETE(
        name,
        `${CM}/${name}${query}`,
        body,
        type === undefined ? {} : { headers: { 'content-type': type } },
      ),
      send.GET(`${name}-after`, `${CM}/${name}`),
    ];
  }),
  send.PATCH(
    'delete-released',
    `${CM}/delete-background-held`,
    { metadata: { finalizers: null } },
    { headers: MERGE_PATCH },
  ),
  send.DELETE('delete-cleared', CM),
];
