/** The rights that a named kind needs: those of the directions in which it is imported, and no more. */

import { describe, expect, test } from 'vitest';
import { NO_COMPANION, type Config } from '../../src/syncer/config/config.ts';
import type { ReferencedKind } from '../../src/syncer/references/referenced-kind.ts';
import { describeRight, requiredRights } from '../../src/syncer/rights.ts';
import { GADGET_KIND } from './references/gadget-kind.ts';

/** Selected. */
const EVERYTHING = {
  selector: { matchLabels: {}, matchExpressions: [] },
  namespaces: { include: [], exclude: [] },
};

/** What rights depend on. */
function configOf(namespaces: object, more: object = {}): Config {
  return {
    sync: {
      endpoints: { enabled: true, patches: [] },
      endpointSlices: { enabled: false, patches: [] },
      services: { enabled: false, patches: [] },
      namespaces,
    },
    services: { mode: 'vcluster', allow: [] },
    ...EVERYTHING,
    virtual: { secret: '' },
    host: { namespace: 'team' },
    leaderElection: { enabled: false },
    companion: NO_COMPANION,
    ...more,
  } as unknown as Config; // no more of it is read
}

function rights(
  parts: Partial<ReferencedKind>,
  isDryRun = false,
  kind: 'single' | 'legacy-multi' = 'single',
): string[] {
  const config = configOf({ kind });
  const references = [{ ...GADGET_KIND, ...parts }];
  return requiredRights(config, { isDryRun, references })
    .filter(({ resource }) => resource === 'gadgets')
    .map(describeRight);
}

const on = (cluster: 'host' | 'virtual', where: string, verbs: string[]): string[] =>
  verbs.map((verb) => `${verb} gadgets.example.com ${where} of the ${cluster} cluster`);

const TEAM = 'in namespace "team"';
const ALL = 'in every namespace';
const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'delete'];

describe('the rights of a named kind', () => {
  test('in both directions', () => {
    expect(rights({})).toEqual([
      ...on('host', TEAM, [...READ, ...WRITE]),
      ...on('virtual', ALL, [...READ, ...WRITE]),
    ]);
  });

  test('only from the host, if the sync of the kind is not configured', () => {
    expect(rights({ isSynced: false })).toEqual([
      ...on('host', TEAM, READ),
      ...on('virtual', ALL, [...READ, ...WRITE]),
    ]);
  });

  test('read-only, if nothing is imported, and in a dry run', () => {
    const read = [...on('host', TEAM, READ), ...on('virtual', ALL, READ)];
    expect(rights({ isImportable: false })).toEqual(read);
    expect(rights({}, true)).toEqual(read);
  });

  test('in every namespace of the host, if namespaces are mapped', () => {
    expect(rights({}, true, 'legacy-multi')).toEqual([...on('host', ALL, READ), ...on('virtual', ALL, READ)]);
  });

  test.each([
    ['exact names', { a: 'team-a', b: '${name}-b' }, false, ['team', 'team-a', 'vc-b']],
    ['a pattern', { a: 'team-a', 'x-*': 'team-*' }, false, ['']],
    ['namespaces that do not exist yet', { a: 'team-a' }, true, ['']],
  ])('of mappings with %s', (_what, byName, createNamespaces, namespaces) => {
    const config = configOf(
      { kind: 'mappings', byName, mappingsOnly: false },
      { name: 'vc', createNamespaces },
    );
    const references = [{ ...GADGET_KIND, isSynced: true, isImportable: true }];
    const host = requiredRights(config, { isDryRun: false, references }).filter(
      ({ cluster, resource }) => cluster === 'host' && resource !== 'namespaces',
    );
    expect([...new Set(host.map(({ namespace }) => namespace))]).toEqual(namespaces);
    for (const resource of ['endpoints', 'gadgets'])
      expect(host.filter((right) => right.resource === resource && right.verb === 'create')).toHaveLength(
        namespaces.length,
      );
  });

  test('none without a patch that names it', () => {
    const config = configOf({ kind: 'single' });
    expect(requiredRights(config, { isDryRun: false }).map(({ resource }) => resource)).not.toContain(
      'gadgets',
    );
  });
});

describe('the rights of leader election', () => {
  const leases = (isEnabled: boolean, isDryRun: boolean): string[] => {
    const config = configOf(
      { kind: 'single' },
      { name: 'my-vcluster', leaderElection: { enabled: isEnabled } },
    );
    return requiredRights(config, { isDryRun })
      .filter(({ resource }) => resource === 'leases')
      .map(describeRight);
  };

  test('are required if it is enabled and the daemon writes', () => {
    const [kind, where] = ['leases.coordination.k8s.io', 'in namespace "team" of the host cluster'];
    expect(leases(true, false)).toEqual([
      `create ${kind} ${where}`,
      `get ${kind} "endpoint-syncer-my-vcluster" ${where}`,
      `update ${kind} "endpoint-syncer-my-vcluster" ${where}`,
    ]);
    expect([leases(false, false), leases(true, true)]).toEqual([[], []]);
  });
});
