/** A new kind stands in its own file and in the registry, and vCluster's own switch of it goes. Everything else follows, or is generated. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CopiedTree } from '../support/copied-tree.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Files of `src` that a new kind may touch. */
const FILES_MAX = 4;

const KIND = `/** Ingresses: their rules name Services, which have other names on the host. */

import { asJson, namespacedResource, type KubeObject } from '../../kube/object.ts';
import { ownValue, type JsonObject } from '../../base/json.ts';
import { validateBy } from '../patch/validate-object.ts';
import { NO_CONTENT } from '../translate/content.ts';
import { OBJECT_FIELDS, PLAIN_KIND, scalars, type SyncableKind } from './kind.ts';

const INGRESSES = namespacedResource('networking.k8s.io/v1', 'Ingress', 'ingresses');
const validate = validateBy(() => []);
const stored = (object: JsonObject): JsonObject => ({ spec: ownValue(object, 'spec') ?? null });
const copied = (object: KubeObject): JsonObject => stored(asJson(object));

export const ingresses: SyncableKind<'ingresses'> = {
  key: 'ingresses',
  description: 'Whether Ingresses are synced to the host.',
  isEnabledByDefault: false,
  resource: INGRESSES,
  fields: {
    what: 'an Ingress',
    fields: { ...OBJECT_FIELDS, spec: { ...scalars('ingressClassName'), rules: { '*': 'any' } }, status: 'any' },
  },
  members: ['spec'],
  hostFields: { status: 'each cluster keeps its own' },
  validation: () => validate,
  sample: { spec: { ingressClassName: 'public', rules: [{ host: 'web.example.com' }] } },
  migration: {
    differences: [{ differs: 'a copy without rules is kept', setting: '-' }],
    keptRules: [{ apiGroups: ['networking.k8s.io'], resources: ['ingresses'], verbs: ['list'] }],
  },
  create: () => ({
    ...PLAIN_KIND,
    resource: INGRESSES,
    isDeletedByControllers: false,
    content: {
      ...NO_CONTENT,
      members: ['spec'],
      toHost: copied,
      toVirtual: copied,
      stored,
      haveSameShape: () => true,
    },
    deletionHint: '',
    translationNote: 'the spec is copied',
    validate,
    serviceKey: () => undefined,
    hostService: () => undefined,
    keysOfService: () => [],
    gate: () => undefined,
  }),
};
`;

/** File, a line of it, and what stands in its place. */
const BY_HAND = [
  [
    'src/syncer/kinds/synced-kinds.ts',
    "import { services } from './services.ts';\n",
    "import { ingresses } from './ingresses.ts';\n$&",
  ],
  [
    'src/syncer/kinds/synced-kinds.ts',
    '[endpoints, endpointSlices]',
    '[endpoints, endpointSlices, ingresses]',
  ],
  // vCluster's own switch of the kind.
  ['src/syncer/config/schema-sync.ts', '  ingresses: kind(false),\n', ''],
] as const;

const FILE = 'sync: {toHost: {ingresses: {enabled: true, patches: PATCHES}}}';
const LIST = 'sync.toHost.ingresses.patches';
/** vCluster leaves all of them to this program. */
const LEFT = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';
const VALUES = 'sync: {toHost: {ingresses: {enabled: true}}}';

const USE = `
import { planMigration, rowsOf, keptRights } from './cli/migration.ts';
import { knownKind } from './syncer/rehearsal/kind-names.ts';
import { apiDefaults } from './cli/offline/api-defaults.ts';
import { FileSync } from './syncer/rehearsal/files.ts';
import { startState } from './showcase/playground.ts';
import { PlaygroundSession } from './showcase/playground-session.ts';
import { parseConfig } from './cli/config/parse.ts';
import { decodeMemberConfig, encodeMemberConfig } from './fleet/config-transfer.ts';
import { memberConfig } from './fleet/member-config.ts';
import { memberRights } from './fleet/rights.ts';
import { kindPolicy } from './syncer/references/referenced-kind.ts';
import { requiredRights } from './syncer/rights.ts';

const OWNER = '{path: metadata.labels.owner, expression: "\`team-\${value}\`"}';
const parse = (patches: string, values = '') =>
  parseConfig(
    {
      text: \`endpointSyncer: {name: a, host: {namespace: host}}\\n\${${JSON.stringify(FILE)}.replace('PATCHES', patches)}\`,
      file: 'f',
    },
    { env: {}, flags: {}, isStart: true },
    values === '' ? undefined : { text: values, file: 'v' },
  );
const messages = (...input: Parameters<typeof parse>) =>
  parse(...input).problems.map(({ severity, path, message }) => [severity, path, message]);
const { config } = parse(\`[\${OWNER}]\`);
if (config === undefined) throw new Error(JSON.stringify(messages(\`[\${OWNER}]\`)));
const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web', namespace: 'shop', uid: 'u', labels: { owner: 'b' } },
  spec: { rules: [] },
};
await using sync = new FileSync({ admit: apiDefaults() });
const { rendered, kinds } = await sync.run({ virtual: [ingress], host: [] }, config, { direction: 'toHost' });
const migration = planMigration({ text: ${JSON.stringify(VALUES)}, file: 'v', name: 'a', hostNamespace: 'h' });
const { examples } = startState(config) as any;
await using session = new PlaygroundSession(() => config);
const page = await session.run({ patches: \`[\${OWNER}]\`, virtual: JSON.stringify(ingress), host: '', isReverse: false });
const defaults = { vcluster: { namespace: 'h', name: 'a' }, defaults: {}, host: config.host };
const overlong = \`[\${Array.from({ length: 900 }, (_, at) => \`{path: metadata.labels.l\${at}, labels: {}}\`).join()}]\`;
const without = parseConfig(
  { text: 'endpointSyncer: {name: a, host: {namespace: host}}', file: 'f' },
  { env: {}, flags: {}, isStart: true },
  { text: ${JSON.stringify(LEFT)}, file: 'v' },
).problems;
const { config: fleet } = parseConfig(
  {
    text: 'endpointSyncer: {host: {namespace: own}, fleet: {enabled: true, namespaces: {include: [one]}}}',
    file: 'f',
  },
  { env: {}, flags: {}, isStart: true, acceptsFleet: true },
);
const member = (patches: string) =>
  memberConfig({
    ...defaults,
    values: { text: ${JSON.stringify(LEFT)}, file: 'v' },
    overlay: { text: ${JSON.stringify(FILE)}.replace('PATCHES', patches), file: 'f' },
  });
const long = member(overlong);
const transferred = decodeMemberConfig(encodeMemberConfig(member('[]')));
process.stdout.write(
  JSON.stringify({
    synced: kinds,
    byDefault: parse('[]', '').config?.sync.ingresses.patches,
    unmatchable: messages('[{path: spec.rulez, labels: {}}]'),
    hostField: messages('[{path: status.loadBalancer, labels: {}}]'),
    emptied: messages('[{path: spec, reverseExpression: value}]'),
    besideVcluster: messages('[]', ${JSON.stringify(VALUES)}).filter(([, path]) => path.includes('ingresses')),
    rights: requiredRights(config, { isDryRun: false })
      .filter(({ resource, cluster }) => resource === 'ingresses' && cluster === 'host')
      .map(({ verb }) => verb),
    unwanted: without.filter(({ path }) => path.includes('ingresses')),
    // A deleted member may have had it in its own file.
    ofFleets: fleet && memberRights(fleet).filter(({ resource }) => resource === 'ingresses').map(({ verb, namespace }) => [verb, namespace]),
    rendered: rendered.map((one) => ('object' in one ? [one.object.metadata.name, one.object.metadata.labels?.['owner']] : one)),
    isSynced: kindPolicy(config.sync).isSynced({ group: 'networking.k8s.io', version: 'v1', kind: 'Ingress', plural: 'ingresses', isNamespaced: true }),
    migrated: {
      synced: migration.synced,
      rows: rowsOf(migration).flatMap(({ what, differs }) => (what === 'Ingresses' ? [[what, differs]] : [])),
      rules: (keptRights({ ...migration, kinds: migration.kinds.filter(({ key }) => key === 'ingresses') }) as any).rbac.role.extraRules,
    },
    named: knownKind('ingresses'),
    example: [examples[0].title, examples[0].patches.includes('ingresses'), examples[0].virtual.includes('kind: Ingress')],
    page: [(page as any).patchList, (page as any).result.includes('team-b')],
    member: [transferred.config?.sync.ingresses, long.config === undefined ? long.invalid : ''],
  }),
);
`;

let copy: CopiedTree;
beforeAll(() => {
  copy = new CopiedTree(BY_HAND, { 'src/syncer/kinds/ingresses.ts': KIND });
});
afterAll(() => copy[Symbol.dispose]());

/** Outside of comments, and of messages about a setting. */
function filesNaming(key: string): string[] {
  const name = new RegExp(String.raw`(?<!toHost\.)\b${key}\b`, 'u');
  return globSync('src/{access-keys,cli,config-file,fleet,shared-config,syncer}/**/*.ts', {
    cwd: ROOT,
  }).filter((file) =>
    name.test(readFileSync(join(ROOT, file), 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gmu, '')),
  );
}

test('no list of kinds stands beside the registry', () => {
  expect(filesNaming('endpointSlices').toSorted()).toEqual([
    'src/syncer/kinds/endpoint-slices.ts',
    'src/syncer/kinds/synced-kinds.ts',
  ]);
});

/** What these know of Endpoints or of slices has no counterpart for another kind; a new one may need its own. Services matter to all kinds. */
const KNOWS_ITS_KIND: Readonly<Record<string, string>> = {
  'src/syncer/engine.ts': 'starts the check below for the copies of Endpoints',
  'src/syncer/mirror-check.ts': 'the host mirrors Endpoints to slices',
  'src/syncer/rehearsal/all-rights.ts': 'lists slices, as slice-check.ts does',
  'src/syncer/rehearsal/object-status.ts': 'says what the two checks found',
  'src/syncer/slice-check.ts': 'slices of others get the traffic of a copy',
};

test('what only one kind needs stands in its file, but for a few checks', () => {
  const isKind = (file: string): boolean => file.startsWith('src/syncer/kinds/');
  const naming = [...filesNaming('ENDPOINTS'), ...filesNaming('ENDPOINT_SLICES')].filter(
    (file) => !isKind(file),
  );
  expect([...new Set(naming)].toSorted()).toEqual(Object.keys(KNOWS_ITS_KIND));
});

test(`a kind touches ${FILES_MAX} files at most, and what is generated`, () => {
  const changed = copy.changed();
  const byHand = changed.filter((name) => name.startsWith('src/'));
  expect(byHand.length).toBeLessThanOrEqual(FILES_MAX);
  expect(changed).toEqual([
    'charts/endpoint-syncer/values.schema.json',
    'config/schema.json',
    'docs/reference.md',
    'src/syncer/config/schema-sync.ts',
    'src/syncer/kinds/ingresses.ts',
    'src/syncer/kinds/synced-kinds.ts',
  ]);
});

test('no type of another file has to be changed', () => {
  expect(copy.typeErrors({ include: ['src'] })).toBe('');
});

test('each of those that ask for kinds knows it', () => {
  copy.write('src/use.ts', USE);
  expect(copy.run('src/use.ts')).toEqual({
    synced: ['Endpoints', 'EndpointSlice', 'Ingress'],
    byDefault: [],
    unmatchable: [
      ['warning', `${LIST}[0].path`, 'never matches: spec has no field "rulez", did you mean "rules"?'],
    ],
    hostField: [
      ['error', `${LIST}[0].path`, 'status of an Ingress cannot be patched: each cluster keeps its own'],
    ],
    emptied: [
      [
        'error',
        `${LIST}[0].path`,
        expect.stringMatching(/^with only a reverseExpression the host keeps its spec/u),
      ],
    ],
    besideVcluster: [
      [
        'error',
        'sync.toHost.ingresses.enabled',
        expect.stringMatching(/^this program syncs Ingresses, and so does vCluster/u),
      ],
      ['error', 'sync.toHost.ingresses.enabled', expect.stringMatching(/^vCluster syncs Ingresses too/u)],
    ],
    rights: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
    unwanted: [],
    ofFleets: [['list', 'one']],
    rendered: [['web-x-shop-x-a', 'team-b']],
    isSynced: true,
    migrated: {
      synced: ['endpoints', 'endpointSlices', 'ingresses'],
      rows: [['Ingresses', 'a copy without rules is kept']],
      rules: [{ apiGroups: ['networking.k8s.io'], resources: ['ingresses'], verbs: ['list'] }],
    },
    named: { kind: 'Ingress', scope: 'namespaced' },
    example: ['Your configuration', true, true],
    page: ['ingresses', true],
    member: [
      { enabled: true, patches: [] },
      expect.stringContaining(`${LIST}: the patches of a member have`),
    ],
  });
});
