/** Folders with a configuration, objects and test cases. */

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Of all test files of this process; each removes it at its end. */
export const folder = join(tmpdir(), `endpoint-syncer-test-${process.pid}`);

/** A folder with these files. */
export function folderWith(files: Record<string, string>): string {
  mkdirSync(folder, { recursive: true });
  const path = mkdtempSync(join(folder, 'case-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

export const CONFIG = `sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.annotations.owner
          expression: 'value === "nobody" ? "none" : "team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: metadata.labels.broken
          expression: value.a.b
        - path: metadata.annotations.tls
          reference: {apiVersion: v1, kind: Secret}
endpointSyncer: {name: vc, host: {namespace: host}}
`;
export const WEB = `apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, annotations: {owner: shop}}
subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]
`;
export const BASE = { 'config.yaml': CONFIG, 'objects/web.yaml': WEB };
export const VIRTUAL_WEB = 'virtual: [objects/web.yaml]';

/** A test file with a case for each of these texts. */
export function casesOf(texts: readonly string[]): Record<string, string> {
  const cases = texts.map((text) => `  - name: it\n${text.replaceAll(/^/gmu, '    ').trimEnd()}\n`);
  return { ...BASE, 'endpoint-syncer-test.yaml': `config: config.yaml\ncases:\n${cases.join('')}` };
}

export function oneCase(lines: string): Record<string, string> {
  return casesOf([lines]);
}

export interface JsonReport {
  passed: number;
  failed: number;
  cases: {
    result: string;
    mismatches: { subject: string; path: string; expected: unknown; actual: unknown }[];
  }[];
  coverage?: { missed: string[] }[];
}

export const HOLDS: Record<string, string> = {
  'a subset of the copy': `${VIRTUAL_WEB}
expect: {host: [{kind: Endpoints, metadata: {name: web-x-shop-x-vc, annotations: {owner: team-shop}}}]}`,
  'an annotation that is not there': `${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {missing: null}}}]}`,
  'a map that is not there, where a key of it is expected to be missing': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a}}]
expect: {host: [{metadata: {name: a-x-default-x-vc, labels: {missing: null}}}]}`,
  'nothing is created': `virtual:
  - ${WEB.trim().replaceAll('\n', '\n    ')}
  - {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 80}]}}
expect:
  host: []
  skipped: [{kind: Endpoints, namespace: shop, name: web, reason: service has a selector}]`,
  'an error of a patch': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}]
expect: {errors: [{patch: 1, contains: Cannot read properties}]}`,
  'errors of the same patch on two objects': `virtual:
  - {apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {broken: x}}}
  - {apiVersion: v1, kind: Endpoints, metadata: {name: b, namespace: shop, labels: {broken: x}}}
expect:
  errors:
    - {object: {kind: Endpoints, namespace: shop, name: b}, patch: 1, path: metadata.labels.broken}
    - {object: {name: a}, contains: Cannot read properties}`,
  'an Event about a reference': `virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {tls: ca}}}]
expect: {events: [{reason: ReferenceNotFound, type: Warning, object: {name: a}, contains: default/ca}]}`,
  'no Event': `virtual: []
expect: {events: []}`,
  'the way back': `${VIRTUAL_WEB}
reverse: {expect: {virtual: [{metadata: {name: web, namespace: shop, annotations: {owner: shop}}}]}}`,
  'a change on the host comes back': `${VIRTUAL_WEB}
host:
  - apiVersion: v1
    kind: Endpoints
    metadata:
      name: web-x-shop-x-vc
      annotations: {vcluster.loft.sh/object-name: web, vcluster.loft.sh/object-namespace: shop, owner: team-billing}
      labels: {vcluster.loft.sh/managed-by: vc}
reverse: {expect: {virtual: [{metadata: {name: web, annotations: {owner: billing}}}]}}`,
  'a round trip': `${VIRTUAL_WEB}
roundTrip: true`,
};
