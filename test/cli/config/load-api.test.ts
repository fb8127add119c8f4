/** The configuration of `api`, `keys` and `store`: the section of the key and token API, what it shares with the sync, and the rules across both. */

import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { nearestWord } from '../../../src/base/suggest.ts';
import { loadApiConfig, type ApiConfig } from '../../../src/cli/config/load-api.ts';
import { knownKeys } from '../../../src/config-file/schema-check.ts';
import { SHARED_FIELDS } from '../../../src/shared-config/shared.ts';
import { syncSections } from '../../../src/syncer/config/schema.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write } = testFolder();

let files = 0;
function load(text: string, sets: readonly string[] = []): Promise<ApiConfig> {
  return loadApiConfig({ file: write(`${files++}.yaml`, text), env: {}, flags: {}, sets });
}

/** `path message` of every problem. */
async function problemsOf(text: string): Promise<string[]> {
  const problems = await load(text).then(
    ({ warnings }) => warnings,
    (error: unknown) => {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    },
  );
  return problems.map(({ path, severity, message }) => `${path} ${severity} ${message}`);
}

test('reads its section, host, http and log', async () => {
  const text = 'endpointSyncer: {host: {namespace: team}, log: {level: warn}}\nmanagementApi: {maxTtl: 1h}';
  expect(await load(text, ['endpointSyncer.http.bindAddress=127.0.0.1:9'])).toMatchObject({
    management: { maxTtl: 3_600_000, dataDir: `${folder}/data`, host: { namespace: 'team' } },
    http: { bindAddress: '127.0.0.1:9' },
    log: { level: 'warn', format: 'auto' },
    warnings: [],
  });
});

test("the sync's sections are the sync's", async () => {
  const text =
    'endpointSyncer: {workers: many, fleet: {enabled: true}}\nsync: {toHost: {endpoints: {patches: [{path: "["}]}}}';
  expect(await problemsOf(text)).toEqual([]);
});

describe('rules across both', () => {
  const BY_NAME = 'sync.toHost.namespaces.mappings.byName.a';
  const mapping = 'sync: {toHost: {namespaces: {enabled: true, mappings: {byName: {a: keys}}}}}';
  const store = 'managementApi: {store: {driver: kubernetes, namespace: keys}, enabled: true}';
  const conflict = `${BY_NAME} error host namespace mapping 'keys' conflicts with namespace of the key store 'keys'`;

  test('the store and a mapping', async () => {
    expect(await problemsOf(`${store}\n${mapping}`)).toEqual([conflict]);
  });

  test("the store and a mapping of vCluster's own values", async () => {
    const values = write('values.yaml', mapping);
    expect(await problemsOf(`${store}\nendpointSyncer: {vclusterConfig: ${values}}`)).toEqual([conflict]);
  });

  test('the store and the host namespace', async () => {
    const [problem = ''] = await problemsOf(`${store}\nendpointSyncer: {host: {namespace: keys}}`);
    expect(problem).toMatch(/^managementApi\.store\.driver warning the Secrets of the key store are in/u);
  });

  test('one address', async () => {
    expect(await problemsOf('managementApi: {enabled: true, bindAddress: "127.0.0.1:8080"}')).toEqual([
      'managementApi.bindAddress error is also endpointSyncer.http.bindAddress: choose another port',
    ]);
  });
});

describe('mistakes', () => {
  test.each([
    ['endpointSyncer: {hots: {}}', 'endpointSyncer.hots error unknown key "hots", did you mean "host"?'],
    [
      'endpointSyncer: {host: {contxt: a}}',
      'endpointSyncer.host.contxt error unknown key "contxt", did you mean "context"?',
    ],
    ['managementAPI: {}', 'managementAPI warning this key is not read: did you mean "managementApi"?'],
    [
      'managementApi: {maxTTL: 1h}',
      'managementApi.maxTTL error unknown key "maxTTL", did you mean "maxTtl"?',
    ],
    [
      'endpointSyncer: {host: {kubeconfig: /none}}',
      'endpointSyncer.host.kubeconfig warning there is no file /none',
    ],
    [
      'managementApi: {issuer: "https://${HOST}"}',
      'managementApi.issuer error must be an https:// URL without user, query and fragment',
    ],
    [
      'apiVersion: v1\nkind: Config',
      'kind error this is a kubeconfig, not a configuration: pass it with --host-kubeconfig or --virtual-kubeconfig',
    ],
  ])('%s', async (text, problem) => {
    expect(await problemsOf(text)).toContain(problem);
  });

  test("no field of the sync resembles one of both: it would be an error for the API's commands", () => {
    const shared = Object.keys(SHARED_FIELDS);
    const others = knownKeys(['endpointSyncer'], syncSections).filter((key) => !shared.includes(key));
    expect(others).toContain('workers');
    expect(others.filter((key) => nearestWord(key, shared) !== undefined)).toEqual([]);
  });
});
