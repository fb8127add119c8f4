/** The warnings of `validate` about patches and placeholders: exact text and place, and `--strict`. */

import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { placeOf } from '../../src/base/excerpt.ts';
import { capturedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { folder, write } = testFolder();

const NAME = 'endpointSyncer: {name: my-vcluster}\n';
const SYNCED = 'endpointSyncer: {name: my-vcluster, services: sync}\n';

function withPatch(entry: string): string {
  return `sync:\n  toHost:\n    endpoints:\n      patches:\n        - ${entry}\n${NAME}`;
}

async function validate(config: string, ...flags: string[]): Promise<{ code: number; out: string }> {
  const { code, out } = await capturedRun(['validate', ...flags, write('config.yaml', config)]);
  return { code, out: out.replaceAll(`${folder}/`, '') };
}

const FIRST = 'sync.toHost.endpoints.patches[0]';
const LABEL = 'path: metadata.labels.a, expression:';

test.each([
  [
    'a reverse that does not undo the expression on a sample',
    withPatch(
      `{path: 'metadata.annotations["a/b"]', expression: '"team-" + value', reverseExpression: value + "-x"}`,
    ),
    'value + "-x"',
    `${FIRST}.reverseExpression: warning: does not undo expression: "checkout" becomes "team-checkout" on the host, and "team-checkout-x" on the way back`,
  ],
  [
    'a reverse that fails',
    withPatch(
      '{path: "subsets[*].ports[*].port", expression: value + 1, reverseExpression: JSON.parse(value).a.b}',
    ),
    'JSON.parse(value).a.b',
    `${FIRST}.reverseExpression: warning: fails on a result of expression: 80 becomes 81 on the host, then TypeError: Cannot read properties of undefined (reading 'b')`,
  ],
  [
    'an expression that fails on an empty list',
    withPatch('{path: subsets, expression: "[value[0].addresses[0]]"}'),
    '"[value',
    `${FIRST}.expression: warning: fails on an empty list, as objects without addresses have it: TypeError: Cannot read properties of undefined (reading 'addresses')`,
  ],
  [
    'a filter that its own patch changes',
    withPatch(
      `{path: 'subsets[*].ports[?(@.port === 5432)].port', expression: value + 1, reverseExpression: value - 1}`,
    ),
    '@.port === 5432',
    `${FIRST}.path: warning: the filter selects 5432, and not 5433, which the expression makes of it: a change on the host would not come back; decide on a field that the patch leaves as it is`,
  ],
  [
    'an expression that asks whether the value exists',
    withPatch(`{${LABEL} 'valueExists ? value : "x"'}`),
    `'valueExists`,
    `${FIRST}.expression: warning: valueExists is always true, because a path that is not found is not patched; with endpointSyncer.patches.missingPaths: create, the expression also runs for a missing key`,
  ],
  [
    'patches of a kind that vCluster syncs',
    `sync:\n  toHost:\n    pods:\n      patches: [{path: a, expression: value}]\n${NAME}`,
    'patches',
    "sync.toHost.pods.patches: warning: this program applies the patches of sync.toHost.endpoints and sync.toHost.endpointSlices only; move these to vCluster's own values",
  ],
  [
    'patches of Services that vCluster syncs',
    `sync:\n  toHost:\n    services:\n      patches: [{any: form}]\n${NAME}`,
    'patches',
    "sync.toHost.services.patches: warning: this program applies the patches of sync.toHost.endpoints and sync.toHost.endpointSlices only; move these to vCluster's own values",
  ],
  [
    'patches of a kind that vCluster syncs, beside those of Services',
    `sync:\n  toHost:\n    pods:\n      patches: [{path: a, expression: value}]\n${SYNCED}`,
    'patches',
    "sync.toHost.pods.patches: warning: this program applies the patches of sync.toHost.endpoints, sync.toHost.endpointSlices and sync.toHost.services only; move these to vCluster's own values",
  ],
  [
    'patches of Services that are off',
    `sync:\n  toHost:\n    services:\n      enabled: false\n      patches: [{path: spec.type, expression: value}]\n${SYNCED}`,
    'patches',
    'sync.toHost.services.patches: warning: these patches are not applied: sync.toHost.services.enabled is not true',
  ],
  [
    'a field that no Service has',
    `sync:\n  toHost:\n    services:\n      patches: [{path: "spec.prots[*].port", expression: value}]\n${SYNCED}`,
    'prots',
    'sync.toHost.services.patches[0].path: warning: never matches: spec has no field "prots", did you mean "ports"?',
  ],
  [
    'a reverse of a Service that does not undo the expression',
    `sync:\n  toHost:\n    services:\n      patches: [{path: "spec.ports[*].port", expression: value + 1, reverseExpression: value}]\n${SYNCED}`,
    'value}]',
    'sync.toHost.services.patches[0].reverseExpression: warning: does not undo expression: 80 becomes 81 on the host, and 81 on the way back',
  ],
  [
    'patches of a kind that is off',
    `sync:\n  toHost:\n    endpointSlices:\n      enabled: false\n      patches: [{path: "endpoints[*].zone", expression: value}]\n${NAME}`,
    'patches',
    'sync.toHost.endpointSlices.patches: warning: these patches are not applied: sync.toHost.endpointSlices.enabled is not true',
  ],
  [
    'values of two types that are compared',
    withPatch(`{${LABEL} 'value == 5 ? "five" : value'}`),
    'value == 5',
    `${FIRST}.expression: warning: \`==\` converts between a string and a number; convert explicitly and use \`===\``,
  ],
  [
    '`in` on a list',
    withPatch(`{${LABEL} 'value in ["a"] ? "x" : value'}`),
    'value in',
    `${FIRST}.expression: warning: \`in\` checks for an index of the list, not for an element; use [...].includes(value)`,
  ],
  [
    'a result that depends on nothing',
    withPatch(`{${LABEL} '"a" + "b"'}`),
    '"a" + "b"',
    `${FIRST}.expression: warning: the expression does not read \`value\` or \`context\`, so all objects get the same result`,
  ],
  [
    'a back-reference below a quantifier',
    withPatch(`{${LABEL} 'value.replace(/^(a+)+\\1$/, "")'}`),
    '/^(a+)+',
    `${FIRST}.expression: warning: a quantifier inside a quantifier together with a back-reference can exceed the time limit on some values`,
  ],
  [
    'a lookaround below a quantifier',
    withPatch(`{${LABEL} 'value.replace(/((?=a)a+)+$/, "")'}`),
    '/((?=a)a+)+$/',
    `${FIRST}.expression: warning: a quantifier inside a quantifier together with a lookaround can exceed the time limit on some values`,
  ],
  [
    'a path that never matches',
    withPatch('{path: "subsets[*].adresses[*].ip", expression: value}'),
    'adresses',
    `${FIRST}.path: warning: never matches: subsets has no field "adresses", did you mean "addresses"?`,
  ],
  [
    'a JSON Pointer',
    withPatch('{path: /metadata/annotations/a, expression: value}'),
    '/metadata',
    `${FIRST}.path: warning: this looks like a JSON Pointer, which is not supported; write metadata.annotations.a`,
  ],
  [
    'a filter of a field that does not exist',
    withPatch(`{path: 'subsets[*].ports[?(@.nmae === "https")].port', expression: value}`),
    '@.nmae',
    `${FIRST}.path: warning: filter: never matches: subsets[*].ports[*] has no field "nmae"; did you mean \`@.name\`?`,
  ],
  [
    'a kubeconfig that does not exist',
    'endpointSyncer: {name: my-vcluster, host: {kubeconfig: /nothing/here}}\n',
    '/nothing/here',
    'endpointSyncer.host.kubeconfig: warning: there is no file /nothing/here',
  ],
  [
    'a placeholder',
    'endpointSyncer: {name: my-vcluster, virtual: {context: "<your context>"}}\n',
    '"<your',
    'endpointSyncer.virtual.context: warning: this looks like a placeholder: <your context>',
  ],
  [
    'a variable',
    'endpointSyncer: {name: my-vcluster, host: {context: "${CONTEXT}"}}\n',
    '"${CONTEXT}"',
    'endpointSyncer.host.context: warning: variables are not expanded in this file: ${CONTEXT}',
  ],
])('%s', async (_what, config, at, message) => {
  const { line, column, excerpt } = placeOf(config, config.indexOf(at));
  const out = `config.yaml:${line}:${column}: ${message}\n${excerpt}\n`;
  expect(await validate(config)).toEqual({ code: 0, out });
  expect(await validate(config, '--strict')).toEqual({ code: 2, out: out.replace('warning: ', '') });
});

test('the values of the test cases next to the configuration are evaluated too', async () => {
  const cases = write(
    'endpoint-syncer-test.yaml',
    `config: config.yaml
cases:
  - name: an owner
    virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {owner: edge}}}]
    expect: {}
`,
  );
  const { out } = await validate(
    withPatch(
      `{path: metadata.annotations.owner, expression: '"x-" + value', reverseExpression: 'value === "x-edge" ? "?" : value.slice(2)'}`,
    ),
  );
  rmSync(cases);
  expect(out).toContain(
    'does not undo expression: "edge" becomes "x-edge" on the host, and "?" on the way back',
  );
});

test.each([
  `{path: metadata.annotations.a, expression: '"team-" + value', reverseExpression: 'value.replace(/^team-/, "")'}`,
  '{path: "subsets[*].ports[*].port", expression: value + 10000, reverseExpression: value - 10000}',
  // Only values of objects are evaluated here, and there is no test case.
  '{path: metadata.annotations, expression: "({...value, a: \\"1\\"})", reverseExpression: "(({a, ...rest}) => rest)(value)"}',
  '{path: metadata.annotations.a, expression: context.virtualObject.metadata.name + value, reverseExpression: value.slice(context.virtualObject.metadata.name.length)}',
])('no warning for %s', async (entry) => {
  expect(await validate(withPatch(entry))).toEqual({ code: 0, out: '' });
});

test.each([
  ['metadata.annotations["a"]', 'value.missing.more'],
  ['metadata.annotations["a"]', 'const { missing } = value; missing.more'],
  ['metadata.annotations["a"]', '[value].map((each) => each.missing.more)'],
  ['metadata.annotations["a"]', 'new Set(value)'],
  ['metadata.labels.a', 'value.split(",").missing[0]'],
  [
    'metadata.annotations',
    'new Map(Object.entries(value).filter(([key]) => key !== "example.com/internal"))',
  ],
  ['metadata.annotations', 'Object.entries(value)["example.com/a"].trim()'],
  ['metadata', 'new Map(Object.entries(value))'],
  ['subsets[*].addresses', 'value.map((each) => each.missing)'],
  ['subsets[*].ports[?(@.name === "https")]', 'new Error(value)'],
  ['subsets', 'value.map((subset) => () => subset)'],
])('at %s, %s fails on every value', async (path, expression) => {
  const config = withPatch(JSON.stringify({ path, expression }));
  const { code, out } = await validate(config, '--strict');
  expect(code).toBe(2);
  expect(out).toMatch(/fails on every value that was tried, such as |fails on a/u);
});

test.each([
  ['metadata.annotations["a"]', 'JSON.parse(value).team.name'],
  ['metadata.annotations["a"]', 'value.match(/^v(\\d+)$/)[1]'],
  ['metadata.annotations["a"]', 'value.split("#")[3].trim()'],
  ['metadata.annotations["a"]', 'base64.decode(value)'],
  ['metadata.annotations["a"]', 'virtualToHostDNS(value)'],
  ['metadata.annotations["a"]', 'new Date(value)'],
  ['metadata.annotations["a"]', 'new Date(value).toISOString()'],
  ['metadata.annotations', '({ ...value, b: value["example.com/a"].split("/")[1].trim() })'],
  [
    'metadata.annotations',
    'Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("a")))',
  ],
  ['metadata.labels', 'delete value.app; value'],
  ['subsets', 'value.filter((each) => each.ports.find((port) => port.name === "https").port === 443)'],
  ['subsets[*].addresses', 'value.filter((each) => each.ip.startsWith("10."))'],
  ['', 'value.metadata.annotations["a"] = "b"; value'],
])('at %s, %s is valid', async (path, expression) => {
  const { out } = await validate(withPatch(JSON.stringify({ path, expression })), '--strict');
  expect(out).not.toContain('fails on every value');
});
