/** The rights of a fleet: what `rbac` prints for it is what its start and the start of every member check. */

import { expect, test } from 'vitest';
import type { Config } from '../../src/syncer/config/config.ts';
import { decideMember } from '../../src/fleet/decide-member.ts';
import { fleetRights, memberRights, usableNamespaces } from '../../src/fleet/rights.ts';
import { describeRight, requiredRights } from '../../src/syncer/rights.ts';
import { validConfig } from '../cli/config/setup.ts';

function fleet(include: string, defaults = '{}'): Config {
  const text = `endpointSyncer: {host: {namespace: own}, defaults: ${defaults}, fleet: {enabled: true, namespaces: {include: ${include}}}}`;
  return validConfig(text, { acceptsFleet: true });
}

function member({ fleet: rules, defaults, host }: Config): Config {
  const values = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  const labels = { 'endpoint-syncer/enabled': 'true' };
  const decision = decideMember(
    {
      namespace: 'team-a',
      name: 'vc',
      workloads: [{ metadata: { name: 'vc', namespace: 'team-a', labels } }],
      access: { metadata: { name: 'vc-vc' }, data: { config: encoded('x') } },
      values: { metadata: { name: 'vc-config-vc' }, data: { 'config.yaml': encoded(values) } },
      overlay: undefined,
    },
    { fleet: rules, defaults, host },
  );
  if (decision.kind !== 'joined') throw new Error(JSON.stringify(decision));
  return decision.config;
}

test.each([
  ['[team-a, team-b]', 'team-a'],
  ['["team-*"]', ''],
])('namespaces %s: a member needs nothing that is not granted', (include, namespace) => {
  const config = fleet(include);
  const granted = [...fleetRights(config), ...memberRights(config)];
  const texts = new Set(granted.map(describeRight));
  const needed = requiredRights(member(config), { isDryRun: false })
    .filter(({ cluster }) => cluster === 'host')
    .map(({ name: _name, ...right }) => describeRight({ ...right, namespace }));
  expect(needed.filter((text) => !texts.has(text))).toEqual([]);
  const namespaces = new Set(granted.map((right) => right.namespace));
  expect([...namespaces]).toEqual(['own', ...(namespace === '' ? [''] : ['team-a', 'team-b'])]);
  expect(granted.every(({ cluster }) => cluster === 'host')).toBe(true);
});

test('the right to create namespaces, which no Role grants, is for the whole cluster', () => {
  const rights = memberRights(fleet('[team-a, team-b]', '{createNamespaces: true}'));
  const wide = rights.filter(({ namespace }) => namespace === '').map(describeRight);
  expect([...new Set(wide)]).toEqual(['create namespaces in every namespace of the host cluster']);
});

test.each<[string, (namespace: string) => boolean, string[]]>([
  ['[team-a, team-b]', () => false, ['team-a', 'team-b']],
  ['[team-a, team-b]', (namespace) => namespace === 'team-a', ['team-b']],
  ['[team-a, team-b]', () => true, []],
  ['["team-*"]', () => false, ['team-*']],
  ['["team-*"]', () => true, []],
  ['["team-*"]', (namespace) => namespace === 'own', []],
])('namespaces %s: one without its rights is left out', (include, isMissing, expected) => {
  const config = fleet(include);
  const missing = fleetRights(config).filter(({ namespace }) => isMissing(namespace));
  expect(usableNamespaces(config, missing)).toEqual(expected);
});
