/** What an API server does not take in an object of a file: where it is, and what to write instead. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ConfigProblem } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { objectProblems } from '../../../src/cli/output/object-problems.ts';
import { parseObjects } from '../../../src/cli/output/objects.ts';
import { worldText } from '../../support/world-file.ts';
import { corpus, verdicts } from './object-corpus.ts';

/** `LINE:COLUMN PATH: MESSAGE` of each problem. */
function problemsOf(text: string): string[] {
  const found: ConfigProblem[] = [];
  parseObjects('f', text, found);
  return found.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
}

const HEAD = 'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\n';
const SLICE =
  'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web}\naddressType: IPv4\n';

describe('each problem has its place and says what to do', () => {
  test.each<[string, string, string[]]>([
    [
      'a member that is one level too high',
      `${HEAD}subsets:\n- addresses: [{ip: 10.0.0.1}]\nports: [{port: 80}]\n`,
      ['6:1 ports: unknown field "ports"; did you mean subsets[*].ports?'],
    ],
    [
      'a misspelt member',
      'apiVersion: v1\nkind: Endpoints\nmetadata:\n  name: web\n  namespaces: shop\n',
      ['5:3 metadata.namespaces: unknown field "namespaces"; did you mean metadata.namespace?'],
    ],
    ['a member of no kind', `${HEAD}bogus: 1\n`, ['4:1 bogus: unknown field "bogus"']],
    [
      'a member of metadata at the root of a kind that is not built in',
      'apiVersion: example.com/v1\nkind: Gadget\nlabels: {a: b}\nmetadata: {name: web, label: {}}\n',
      ['4:23 metadata.label: unknown field "label"; did you mean metadata.labels?'],
    ],
    [
      'a host name as an address',
      `${HEAD}subsets:\n- addresses:\n  - ip: db.example.com\n`,
      [
        '6:9 subsets[0].addresses[0].ip: Invalid value: "db.example.com": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      ],
    ],
    [
      'two ports without names',
      `${HEAD}subsets:\n- addresses: [{ip: 10.0.0.1}]\n  ports:\n  - port: 80\n  - port: 81\n`,
      ['7:5 subsets[0].ports[0].name: Required value', '8:5 subsets[0].ports[1].name: Required value'],
    ],
    [
      'several values of the wrong type, and an unknown member',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web, labels: {version: 1.10}}\nsubsets:\n' +
        '- addresses: [{ip: 10.0.0.1}]\n  ports: [{port: "8080", nam: a}]\n',
      [
        '6:26 subsets[0].ports[0].nam: unknown field "nam"; did you mean subsets[0].ports[0].name?',
        '3:41 metadata.labels.version: must be a string, not the number 1.1: quote it',
        '6:18 subsets[0].ports[0].port: must be a whole number, not the string "8080": write 8080 without quotes',
      ],
    ],
    [
      'a quoted boolean',
      `${SLICE}endpoints: [{addresses: [10.0.0.1], conditions: {ready: "true"}}]\n`,
      [
        '5:57 endpoints[0].conditions.ready: must be true or false, not the string "true": write true without quotes',
      ],
    ],
    [
      'a list as a mapping',
      `${HEAD}subsets: {addresses: []}\n`,
      ['4:10 subsets: must be a list, not a mapping'],
    ],
    [
      'the value of a label',
      'apiVersion: v1\nkind: Endpoints\nmetadata:\n  name: web\n  labels:\n    ok: x\n    example.com/a: a b\n',
      [
        expect.stringMatching(
          /^7:20 metadata\.labels\["example\.com\/a"\]: Invalid value: "a b": a valid label must/u,
        ) as string,
      ],
    ],
    [
      'the key of an annotation',
      'apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: web, annotations: {a b: x}}\n',
      [
        expect.stringMatching(
          /^3:42 metadata\.annotations\["a b"\]: Invalid value: "a b": name part/u,
        ) as string,
      ],
    ],
    [
      'a version that is gone',
      SLICE.replace('/v1', '/v1beta1'),
      [
        '1:13 apiVersion: no API server serves EndpointSlice as discovery.k8s.io/v1beta1; write discovery.k8s.io/v1',
      ],
    ],
    [
      'a kind of another group',
      HEAD.replace('v1', 'discovery.k8s.io/v1'),
      ['1:13 apiVersion: no API server serves Endpoints as discovery.k8s.io/v1; write v1'],
    ],
    [
      'a misspelt kind',
      HEAD.replace('Endpoints', 'Endpoint'),
      ['2:7 kind: v1 has no kind "Endpoint", did you mean "Endpoints"?'],
    ],
    [
      'a version of no kind',
      HEAD.replace('v1\nkind: Endpoints', 'v2\nkind: Node'),
      ['1:13 apiVersion: no API server serves v2'],
    ],
    [
      'an item of a List',
      `apiVersion: v1\nkind: List\nitems:\n- ${HEAD.replaceAll('\n', '\n  ')}subset: []\n`,
      ['7:3 items[0].subset: unknown field "subset"; did you mean subsets?'],
    ],
  ])('%s', (_, text, expected) => {
    expect(problemsOf(text)).toEqual(expected);
  });
});

test.each([
  'apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {anything: 1}\n',
  'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {template: {}}\n',
  'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: "system:node"}\n',
  // As a server returns an object.
  'apiVersion: v1\nkind: Service\nmetadata: {name: a, uid: u, resourceVersion: "7", creationTimestamp: null, managedFields: null}\n' +
    'spec: {clusterIP: 10.0.0.5, clusterIPs: [10.0.0.5], ports: [{port: 80}]}\nstatus: {loadBalancer: {}}\n',
])('no problem is found in %o', (text) => {
  expect(problemsOf(text)).toEqual([]);
});

test('an object with nothing but a name is enough where only the name counts', () => {
  const service: JsonObject = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } };
  const paths = (rules: object): unknown[] => objectProblems(service, rules).map(({ path }) => path);
  expect(paths({})).toEqual([['spec', 'ports']]);
  expect(paths({ nameIsEnough: true })).toEqual([]);
  expect(objectProblems({ ...service, spec: {} }, { nameIsEnough: true })).toHaveLength(1);
});

test('a Service may stand for its selector alone, and what it has of ports is checked', () => {
  const service = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\n';
  expect(problemsOf(`${service}spec: {selector: {app: web}}\n`)).toEqual([]);
  expect(problemsOf(`${service}spec: {selector: {app: web}, ports: [{port: 0}]}\n`)).not.toEqual([]);
});

test('what people wrote', () => {
  // `on`, `yes` and `n` are booleans, as for kubectl.
  expect(problemsOf(worldText('values/i11.yaml'))).toEqual([
    '3:68 metadata.labels.true: must be a string, not the boolean true: quote it',
    '3:58 metadata.labels.version: must be a string, not the number 1.1: quote it',
    '3:91 metadata.annotations.false: must be a string, not the number 5: quote it',
    '4:57 subsets[0].ports[0].port: must be a whole number, not the string "8080": write 8080 without quotes',
  ]);
});

test.each([
  [
    'field/f6-files/hostname-as-ip.yaml',
    '4:29 subsets[0].addresses[0].ip: Invalid value: "rgw.example.com": must be a valid IP',
  ],
  [
    'field/f6-files/metadata-namespaces.yaml',
    '5:3 metadata.namespaces: unknown field "namespaces"; did you mean metadata.namespace?',
  ],
  ['field/f6-files/ports-outside.yaml', '8:1 ports: unknown field "ports"; did you mean subsets[*].ports?'],
  ['field/f6-files/two-ports-no-name.yaml', '6:21 ports[1].name: Duplicate value: ""'],
  [
    'field/f6-files/v1beta1.yaml',
    '1:13 apiVersion: no API server serves EndpointSlice as discovery.k8s.io/v1beta1; write',
  ],
])('what people wrote: %s', (name, problem) => {
  expect(problemsOf(worldText(name))).toEqual([expect.stringContaining(problem)]);
});

test('a kube-apiserver refuses the same objects of the corpus', () => {
  const recorded = readFileSync(join(import.meta.dirname, 'object-corpus.txt'), 'utf8');
  expect(verdicts(corpus().map(({ object }) => objectProblems(object).length > 0))).toBe(recorded);
});
