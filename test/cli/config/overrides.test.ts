/** `--set KEY=VALUE`: any field of the file from the command line. */

import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { parseConfig, type ParseResult } from '../../../src/cli/config/parse.ts';

const FILE = 'endpointSyncer: {name: vc, workers: 2}\nsync: {toHost: {secrets: {enabled: false}}}\n';

function parse(sets: readonly string[], flags: Record<string, string> = {}): ParseResult {
  return parseConfig({ text: FILE, file: 'c.yaml' }, { env: {}, flags, sets });
}

describe('a field', () => {
  test.each([
    ['endpointSyncer.workers=4', { workers: 4 }],
    ['endpointSyncer.log.level=debug', { log: { level: 'debug' } }],
    ['endpointSyncer.createNamespaces=true', { createNamespaces: true }],
    ['endpointSyncer.namespaces.include=[a, b]', { namespaces: { include: ['a', 'b'] } }],
    ['endpointSyncer["workers"]=5', { workers: 5 }],
    // Nothing is the default, also where the file says something else.
    ['endpointSyncer.workers=', { workers: 10 }],
  ])('%s', (text, expected) => {
    const { config, problems } = parse([text]);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(config).toMatchObject(expected);
  });

  test('the last one wins, also over flags', () => {
    const sets = ['endpointSyncer.workers=4', 'endpointSyncer.workers=5'];
    expect(parse(sets, { workers: '3' }).config?.workers).toBe(5);
  });

  test('patches, and a kind whose name has dots', () => {
    const { config } = parse([
      'sync.toHost.endpoints.patches=[{path: metadata.labels.a, expression: "\'x=\' + value"}]',
      'sync.toHost.customResources["gadgets.example.com"].enabled=true',
    ]);
    expect(config?.sync.endpoints.patches).toMatchObject([{ path: 'metadata.labels.a' }]);
    expect([...(config?.sync.enabledCustomResources ?? [])]).toEqual(['gadgets.example.com']);
  });
});

describe('what is wrong names the option', () => {
  const messageOf = (text: string): string => {
    try {
      return parse([text])
        .problems.filter(({ severity }) => severity === 'error')
        .map(({ file, path, message }) => `${file}: ${path}: ${message}`)
        .join('\n');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map(({ file, message }) => `${file}: ${message}`).join('\n');
    }
  };
  const FORM = 'write KEY=VALUE with a key as in the file, such as endpointSyncer.workers=4';
  test.each([
    ['endpointSyncer.workers', `--set endpointSyncer.workers: ${FORM}`],
    ['=4', `--set =4: ${FORM}`],
    ['endpointSyncer..workers=4', `--set endpointSyncer..workers=4: ${FORM}`],
    ['endpointSyncer.=4', `--set endpointSyncer.=4: ${FORM}`],
    ['endpointSyncer[0]=4', `--set endpointSyncer[0]=4: ${FORM}`],
    [
      'workers=4',
      '--set workers=4: the configuration has no section "workers"; a key begins with its section, such as endpointSyncer',
    ],
    [
      'endpointSyncr.workers=4',
      '--set endpointSyncr.workers=4: the configuration has no section "endpointSyncr", did you mean "endpointSyncer"?',
    ],
    [
      'endpointSyncer.workrs=4',
      '--set endpointSyncer.workrs: endpointSyncer.workrs: unknown key "workrs", did you mean "workers"?',
    ],
    [
      'endpointSyncer.workers=four',
      '--set endpointSyncer.workers: endpointSyncer.workers: must be a whole number, found "four"',
    ],
    [
      'endpointSyncer.workers=4\nb: 1',
      '--set endpointSyncer.workers=4\nb: 1: the value is no YAML on one line: it has several keys',
    ],
  ])('%s', (text, expected) => {
    expect(messageOf(text)).toBe(expected);
  });

  test('a list that does not end', () => {
    expect(messageOf('endpointSyncer.selector={a')).toMatch(
      /^--set endpointSyncer\.selector=\{a: the value is no YAML on one line: ./u,
    );
  });
});
