/** Options of a list, and their combinations. */

import { CM, TABLE, configMap, send } from './step.ts';
import type { Step } from './transcript.ts';

const YAML_FIRST = { accept: 'application/json;q=0.1,application/yaml;q=0.9' };
const V1BETA1 = { accept: 'application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io' };

const QUERIES: Readonly<Record<string, string>> = {
  'limit-empty': 'limit=',
  'limit-huge': 'limit=99999999999999999999',
  'limit-negative': 'limit=-1',
  'timeout-text': 'timeoutSeconds=abc',
  'exact-zero': 'resourceVersion=0&resourceVersionMatch=Exact',
  'exact-page': 'resourceVersion={rv:list-b}&limit=1',
  'match-unknown-alone': 'resourceVersionMatch=Foo',
  'continue-version': 'limit=1&continue={continue:list-first}&resourceVersion={rv:list-a}',
  'continue-match':
    'limit=1&continue={continue:list-first}&resourceVersion={rv:list-a}&resourceVersionMatch=Exact',
  'initial-events': 'sendInitialEvents=true',
  'initial-events-matched': 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan',
  'field-escape': 'fieldSelector=metadata.name%3Da%5Cx',
  'field-escape-end': 'fieldSelector=metadata.name%3Da%5C',
  'field-bare-equals': 'fieldSelector=metadata.name%3D%3D%3Da',
  'field-escaped-comma': 'fieldSelector=metadata.name%3Da%5C,b',
};

export const LIST_STEPS: readonly Step[] = [
  ...['a', 'b', 'c'].map((name) => send.POST(`list-${name}`, CM, configMap(`list-${name}`))),
  send.GET('list-first', `${CM}?limit=1`),
  ...Object.entries(QUERIES).map(([id, query]) => send.GET(`list-options-${id}`, `${CM}?${query}`)),
  send.GET('list-include-unknown', `${CM}?includeObject=Bogus`, undefined, { headers: TABLE }),
  send.GET('get-partial-v1beta1', `${CM}/list-a`, undefined, { headers: V1BETA1 }),
  send.GET('version-weighed', `${CM}/list-a`, undefined, { headers: YAML_FIRST }),
  send.DELETE('delete-everywhere', '/api/v1/configmaps?labelSelector=none'),
  send.DELETE('list-cleared', CM),
];
