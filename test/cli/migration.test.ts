/** The change of vCluster's values: only the sync that this program takes over differs, whatever users pass, or an error says why not. */

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { parse, stringify, type ToStringOptions } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { mergeConfig, withoutEmptyKeys } from '../../src/config-file/merge.ts';
import { withoutHeading } from '../../src/shared-config/vcluster-values.ts';
import { costlyRuns } from '../support/costly-runs.ts';
import { WORLD, worldFile, worldText } from '../support/world-file.ts';
import { capturedRun } from './captured-run.ts';
import { folder, migrate, json, BOTH_OFF } from './migrated.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('only the kinds that it syncs', async () => {
  const values = 'sync: {toHost: {endpointSlices: {enabled: false}, endpoints: {enabled: true}}}\n';
  const { config, values: after, table } = await json(values);
  expect(after).toBe(values.replace('true', 'false'));
  expect(config).toMatchObject({
    sync: { toHost: { endpoints: { enabled: true }, endpointSlices: { enabled: false } } },
  });
  expect(table.find(({ what }) => what === 'EndpointSlices')).toMatchObject({
    today: 'not synced',
    afterwards: 'not synced',
  });
});

describe('what people pass', () => {
  const run = async (name: string) => {
    const { code, out, err } = await capturedRun([
      'migrate',
      '--name',
      'vc',
      '--vcluster-config',
      worldFile(name),
    ]);
    return { code, out, err: err.replaceAll(`${WORLD}/`, '') };
  };

  test.each([
    ['migrate/aliasSecond.yaml', []],
    ['migrate/anchorFirst.yaml', []],
    ['migrate/globalAnchor.yaml', ['"team-" + value']],
    ['migrate/multidoc.yaml', []],
  ])('%s: says what to write by hand, exit 1', async (name, kept) => {
    const { code, out, err } = await run(name);
    expect(code).toBe(1);
    expect(err).toContain(`${name}: no edit leaves everything else as it is`);
    expect(out).toContain(
      'Write, in place of what is there:\nsync:\n  toHost:\n    endpoints:\n      enabled: false\n',
    );
    for (const text of kept) expect(out).toContain(text);
    expect(out).not.toContain('+++');
  });

  test.each([
    [
      'migrate/manifest.yaml',
      '2:1: kind: this is a Kubernetes object of kind VirtualClusterTemplate, not the values of vCluster: pass what is at spec.template.helmRelease.values',
    ],
    ['migrate/old2.yaml', '1:1: multiNamespaceMode: these are values of vCluster 0.19 or older'],
    [
      'migrate/umbrella.yaml',
      '3:1: vcluster: these are values of a chart that contains vCluster: pass what is below vcluster alone',
    ],
  ])('%s: is no values file of vCluster, exit 2', async (name, problem) => {
    const { code, out, err } = await run(name);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(`${name}:${problem}`);
  });

  test.each([
    ['sync: []', '1:7: sync: must be a mapping, found a list'],
    ['sync: {toHost: 1}', '1:16: sync.toHost: must be a mapping, found 1'],
    ['sync: {toHost: {endpoints: true}}', '1:28: sync.toHost.endpoints: must be a mapping, found true'],
    [
      'sync: {toHost: {endpointSlices: [a]}}',
      '1:33: sync.toHost.endpointSlices: must be a mapping, found a list',
    ],
  ])('%s: is named as what no vCluster takes, exit 2', async (text, problem) => {
    const { code, out, err } = await migrate(text);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(problem);
  });

  test('any values: only two fields change, or an error says why not', async () => {
    const leaf = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.boolean(), fc.constantFrom('true', null, [], {}));
    const kind = fc.oneof(leaf, fc.record({ enabled: leaf, patches: leaf }, { requiredKeys: [] }));
    const kinds = { endpoints: kind, endpointSlices: kind, pods: kind };
    const toHost = fc.oneof({ weight: 9, arbitrary: fc.record(kinds, { requiredKeys: [] }) }, leaf);
    const sync = fc.oneof(
      { weight: 9, arbitrary: fc.record({ toHost, other: leaf }, { requiredKeys: [] }) },
      leaf,
    );
    const anything = fc.record({ sync, other: leaf }, { requiredKeys: [] });
    const style = fc.constantFrom<ToStringOptions>(
      {},
      { collectionStyle: 'flow' },
      { defaultStringType: 'QUOTE_DOUBLE' },
    );
    await fc.assert(
      fc.asyncProperty(anything, style, fc.boolean(), async (given, options, isWindows) => {
        const text = stringify(given, { aliasDuplicateObjects: false, ...options });
        const { code, out, err } = await migrate(
          isWindows ? text.replaceAll('\n', '\r\n') : text,
          '-o',
          'json',
        );
        expect(err).not.toMatch(/\n {4}at /u);
        const { values } = (out === '' ? {} : JSON.parse(out)) as { values?: string };
        const expected = mergeConfig(withoutEmptyKeys(given as JsonObject), BOTH_OFF);
        const edited = values === undefined ? expected : withoutEmptyKeys(parse(values) as JsonObject);
        expect(edited).toEqual(expected);
        const foreignEnd = isWindows ? /(?<!\r)\n/u : /\r/u;
        expect(values ?? '').not.toMatch(foreignEnd);
        expect(code === 2).toBe(out === '');
        expect(err).toMatch(code === 2 ? /^vcluster.yaml:\d/u : /^/u);
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test.each([
    ['enabled: without a value', worldText('migrate/enabledNull.yaml')],
    ['what helm get values prints for a release without values', 'USER-SUPPLIED VALUES:\nnull\n'],
    ['what helm get values prints', 'USER-SUPPLIED VALUES:\nsync:\n  toHost:\n    pods: {enabled: true}\n'],
    ['an empty file', ''],
    ['another section', 'controlPlane: {}\n'],
    ['an empty kind', 'sync:\n  toHost:\n    endpoints:\n'],
    ['flow style', 'sync: {toHost: {endpoints: {enabled: true}}}\n'],
    ['text for a boolean', 'sync:\n  toHost:\n    endpoints: {enabled: "true"}\n'],
    ['an anchor elsewhere', 'x: &on {enabled: true}\nsync:\n  toHost:\n    endpoints: {enabled: true}\n'],
    ['a comment', '# nothing\n'],
    ['an empty map', '{}'],
    ['sections without values', 'sync:\n  toHost:\n'],
    ['a section without a value', 'sync:\n'],
    ['JSON', '{"sync": {"toHost": {"endpoints": {"enabled": true}, "pods": {"enabled": true}}}}'],
    [
      'an anchor of something else',
      'a: &a {b: 1}\nglobal: *a\nsync: {toHost: {endpoints: {enabled: true}}}\n',
    ],
    [
      'kinds that vCluster does not sync',
      'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n',
    ],
  ])('%s: only two fields change', async (_what, text) => {
    const { code, values } = await json(text);
    const before = (parse(text.replace(/^USER.*$/mu, ''), { merge: true }) ?? {}) as JsonObject;
    expect(withoutEmptyKeys(parse(values, { merge: true }) as JsonObject)).toEqual(
      mergeConfig(withoutEmptyKeys(before), BOTH_OFF),
    );
    expect(code).toBe(0);
  });
});

describe('the change applies to the file that was given', () => {
  const headings = ['', 'USER-SUPPLIED VALUES:\n', 'COMPUTED VALUES:\n', '# mine\n\nUSER-SUPPLIED VALUES:\n'];
  const bodies = [
    'sync:\n  toHost:\n    endpoints:\n      enabled: true # wanted\n    pods: {enabled: true}\n',
    'sync: {toHost: {endpoints: {enabled: true}}}\n',
    'a: 1\nb: 2\nc: 3\nd: 4\ncontrolPlane: {}\n',
    '',
  ];
  const cases = headings.flatMap((heading) =>
    bodies.flatMap((body) => [heading + body, `${heading}${body}`.replace(/\n$/u, '')]),
  );
  const texts = [...cases, ...cases.map((text) => text.replaceAll('\n', '\r\n'))];

  test.each([
    ['patch', ['--binary', '-p0']],
    ['git', ['apply', '--whitespace=nowarn', '-p0']],
  ])('with %s', async (program, args) => {
    const changed: string[] = [];
    for (const text of texts) {
      const { out } = await migrate(text);
      const { values } = await json(text);
      writeFileSync(join(folder, 'vcluster.yaml'), text);
      if (out.includes('+++')) {
        execFileSync(program, args, { cwd: folder, input: out });
        changed.push(text);
      }
      expect(withoutHeading(readFileSync(join(folder, 'vcluster.yaml'), 'utf8'))).toBe(values);
    }
    expect(changed.length).toBeGreaterThan(texts.length / 2);
  });
});
