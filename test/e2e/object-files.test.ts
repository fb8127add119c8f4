/** The offline commands take exactly the objects that a real kube-apiserver takes from `kubectl create --dry-run=server --validate=strict`. With `-u`, what
 * the server decides is recorded in `object-corpus.txt`, with which the tests without a cluster compare. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { objectProblems } from '../../src/cli/output/object-problems.ts';
import { formatPath } from '../../src/config-file/finding.ts';
import { corpus, verdicts, type CorpusObject } from '../cli/output/object-corpus.ts';
import { testFolder } from '../support/test-folder.ts';
import { kubeAssets } from './assets.ts';
import { suiteClusters } from './suite-clusters.ts';

let agent: Agent;

beforeAll(() => {
  agent = new Agent({ connect: { ca: readFileSync(suiteClusters().virtual.caFile, 'utf8') } });
});

afterAll(() => agent.close());

interface Refusal {
  readonly message: string;
  readonly details?: { readonly causes?: readonly { readonly field?: string }[] };
}

/** Undefined: the server takes it. */
async function refusalOf({ path, object }: CorpusObject): Promise<Refusal | undefined> {
  const { url, token } = suiteClusters().virtual;
  const response = await fetch(`${url}/${path}?dryRun=All&fieldValidation=Strict`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(object),
    dispatcher: agent,
  });
  const body = (await response.json()) as Refusal; // of an API server
  // Which addresses a server has is a matter of its flags.
  return response.status === 201 || body.message.includes('failed to allocate IP') ? undefined : body;
}

/** Without indexes and keys: of owner references, 1.37 has indexes and 1.36 has none. */
function plain(field: string): string {
  return field.replaceAll(/\[.*?\]/gu, '');
}

test('the corpus, and the fields that are wrong', async () => {
  const areRefused: boolean[] = [];
  const different: unknown[] = [];
  for (const one of corpus()) {
    const refusal = await refusalOf(one);
    areRefused.push(refusal !== undefined);
    const fields = refusal?.details?.causes?.map(({ field = '' }) => plain(field)) ?? [];
    const ours = objectProblems(one.object).map(({ path }) => plain(formatPath(path)));
    const isNamed = ours.some((path) => fields.some((field) => path.startsWith(field)));
    const unknown = /unknown field "(.*?)"/u.exec(refusal?.message ?? '')?.[1];
    if (fields.length > 0 && !isNamed) different.push({ id: one.id, fields, ours });
    if (unknown !== undefined && !ours.includes(plain(unknown)))
      different.push({ id: one.id, unknown, ours });
  }
  expect(different).toEqual([]);
  const recorded = join(import.meta.dirname, '../cli/output/object-corpus.txt');
  await expect(verdicts(areRefused)).toMatchFileSnapshot(recorded);
});

const { write } = testFolder();

test.each<[string, JsonObject]>([
  ['the object itself', {}],
  ['an unknown member', { bogus: 1 }],
  ['a version that is gone', { apiVersion: 'discovery.k8s.io/v1beta1', kind: 'EndpointSlice' }],
  ['a kind of another group', { apiVersion: 'discovery.k8s.io/v1' }],
  ['an unknown kind', { kind: 'Endpoint' }],
  ['an unknown version', { apiVersion: 'v2' }],
  ['an unknown member of metadata', { metadata: { name: 'web', namespaces: 'shop' } }],
  ['no kind', { kind: '' }],
  ['no version', { apiVersion: '' }],
  ['no name', { metadata: {} }],
])('kubectl, on %s', async (_, changes) => {
  const object = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web' }, ...changes };
  const kubectl = join(await kubeAssets(), 'kubectl');
  const { kubeconfigPath } = suiteClusters().virtual;
  const args = [
    'create',
    '--dry-run=server',
    '--validate=strict',
    '-f',
    write('object.json', JSON.stringify(object)),
  ];
  const isTaken = await promisify(execFile)(kubectl, ['--kubeconfig', kubeconfigPath, ...args]).then(
    () => true,
    () => false,
  );
  expect(isTaken).toBe(objectProblems(object).length === 0);
});
