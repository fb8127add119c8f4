/** Settings of a fleet: what it needs, and what belongs to its members. */

import { describe, expect, test } from 'vitest';
import { problemsIn, validConfig } from '../../cli/config/setup.ts';

const FLEET = 'fleet: {enabled: true, namespaces: {include: ["team-*"]}}';

function problems(lines: readonly string[], { rest = '', acceptsFleet = true } = {}): string[] {
  const text = `endpointSyncer:\n${lines.map((line) => `  ${line}\n`).join('')}${rest}`;
  return problemsIn(text, { acceptsFleet });
}

describe('a fleet', () => {
  test('needs no name, and what every member gets is kept as written', () => {
    const text = `endpointSyncer:\n  ${FLEET}\n  defaults: {sandbox: {memory: 64Mi}}\n`;
    const config = validConfig(text, { acceptsFleet: true });
    expect(config.defaults).toEqual({ sandbox: { memory: '64Mi' } });
    expect(config.name).toBe('');
  });

  test.each([
    ['fleet: {enabled: true}', /fleet\.namespaces\.include is required: .*\["team-a"\] or \["team-\*"\]/u],
    [
      'fleet: {enabled: true, namespaces: {include: [Team]}}',
      /include\[0\] must be the name of a namespace/u,
    ],
    [
      'fleet: {enabled: true, namespaces: {include: [a], exclude: ["a/b"]}}',
      /exclude\[0\] must be the name of a namespace/u,
    ],
    [`${FLEET.slice(0, -1)}, selector: {matchLabels: {"a b": c}}}`, /fleet\.selector\.matchLabels\["a b"\]/u],
  ])('%s', (line, expected) => {
    expect(problems([line])).toEqual([expect.stringMatching(expected)]);
  });

  test.each([
    ['name: a', /endpointSyncer\.name is not a setting of a fleet: remove it, each member has the name/u],
    [
      'virtual: {secret: vc-a}',
      /endpointSyncer\.virtual .*remove it, each member has the access in the Secret vc-NAME/u,
    ],
    ['vclusterConfig: /a', /endpointSyncer\.vclusterConfig .*the values in the Secret vc-config-NAME/u],
    ['workers: 3', /endpointSyncer\.workers .*move it to endpointSyncer\.defaults/u],
    ['defaults: {leaderElection: {enabled: false}}', /leaderElection\.enabled cannot be false/u],
    ['defaults: {name: a}', /defaults\.name unknown key "name"/u],
    [
      'defaults: {selector: {matchLabels: {"a b": c}}}',
      /endpointSyncer\.defaults\.selector\.matchLabels\["a b"\]/u,
    ],
    [
      'defaults: {sandbox: {batchTimeout: 10ms}}',
      /endpointSyncer\.defaults\.sandbox\.batchTimeout expressionTimeout/u,
    ],
    ['defaults: {owner: {kind: Pod}}', /endpointSyncer\.defaults\.owner\.name is required/u],
  ])('has no %s', (line, expected) => {
    expect(problems([FLEET, line])).toEqual([expect.stringMatching(expected)]);
  });

  test('has no sections of one vCluster', () => {
    const rest = 'sync: {toHost: {}}\nexperimental: {}\n';
    expect(problems([FLEET], { rest })).toEqual([
      expect.stringMatching(/^3:1 sync is not a section of a fleet/u),
      expect.stringMatching(/^4:1 experimental is not a section of a fleet/u),
    ]);
  });

  test('does not have the namespace of its own', () => {
    const host = (namespace: string): string => `host: {namespace: ${namespace}}`;
    expect(problems([FLEET, host('team-infra')])).toEqual([
      expect.stringMatching(/includes the fleet's own namespace "team-infra"/u),
    ]);
    expect(problems([FLEET, host('infra')])).toEqual([]);
    const excluding = 'fleet: {enabled: true, namespaces: {include: ["*"], exclude: [infra]}}';
    expect(problems([excluding, host('infra')])).toEqual([]);
  });

  test('is refused by commands for one virtual cluster', () => {
    expect(problems([FLEET], { acceptsFleet: false })).toEqual([
      expect.stringMatching(
        /fleet\.enabled this is the configuration of a fleet, and the command is for one virtual cluster/u,
      ),
    ]);
  });
});

test('what members of no fleet get has no effect', () => {
  expect(problems(['name: a', 'defaults: {workers: 3}'])).toEqual([
    expect.stringMatching(
      /endpointSyncer\.defaults \(warning\) has no effect while endpointSyncer\.fleet\.enabled is false/u,
    ),
  ]);
});
