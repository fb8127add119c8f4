/** The parts of the page that need no browser. */

import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PAGE_EXAMPLES } from '../../../src/cli/page/examples.ts';
import { patchPathsOf } from '../../../src/cli/page/object-paths.ts';
import { denialOf } from '../../../src/cli/page/page-guard.ts';
import { findPageModules } from '../../../src/cli/page/page-modules.ts';
import { startPageServer } from '../../../src/cli/page/page-server.ts';
import { PlaygroundSession } from '../../../src/cli/page/playground-session.ts';
import { startState } from '../../../src/cli/page/start-state.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { validConfig } from '../../config/setup.ts';

const CONFIG = validConfig('endpointSyncer: {name: my-vcluster, host: {namespace: team-a}}');

describe('access to the page', () => {
  const ask = (method: string, headers: Record<string, string>): string | undefined =>
    denialOf({ method, headers } as unknown as IncomingMessage, 8090); // what it reads of a request

  test.each([
    ['GET', { host: '127.0.0.1:8090' }],
    ['GET', { host: 'localhost:8090' }],
    ['POST', { host: 'localhost:8090', origin: 'http://localhost:8090' }],
    ['POST', { host: '[::1]:8090', origin: 'http://[::1]:8090' }],
  ])('%s with %j is allowed', (method, headers) => {
    expect(ask(method, headers)).toBeUndefined();
  });

  test.each([
    ['GET', {}],
    ['GET', { host: 'evil.example:8090' }],
    ['GET', { host: '127.0.0.1:9090' }],
    ['GET', { host: '127.0.0.1:8090', origin: 'http://evil.example' }],
    ['POST', { host: '127.0.0.1:8090' }],
    ['POST', { host: '127.0.0.1:8090', origin: 'null' }],
    ['POST', { host: '127.0.0.1:8090', origin: 'http://evil.example' }],
  ])('%s with %j is denied', (method, headers) => {
    expect(ask(method, headers)).toBeDefined();
  });
});

describe('the files of the page', () => {
  test('every package of the import map is served, and nothing else', () => {
    const modules = findPageModules();
    const { imports } = JSON.parse(modules.importMap) as { imports: Record<string, string> }; // what it wrote
    expect(Object.keys(imports)).toContain('@codemirror/state');
    for (const path of Object.values(imports)) expect(modules.read(path)).toContain('export');
    expect(modules.read('/modules/../package.json')).toBeUndefined();
    expect(modules.read('/modules/zod.js')).toBeUndefined();
  });

  test('a port that is in use is an error that names the next step', async () => {
    await using first = await startPageServer({ port: 0, calls: {}, feeds: {} });
    const port = Number(new URL(first.url).port);
    await expect(startPageServer({ port, calls: {}, feeds: {} })).rejects.toThrow('choose another --port');
  });

  test('completion offers every member once, with wildcards for elements', () => {
    const object = {
      metadata: { annotations: { 'example.com/a': 'x' } },
      subsets: [{ addresses: [{ ip: 'a' }, { ip: 'b' }] }],
    };
    expect(patchPathsOf(object)).toEqual([
      'metadata',
      'metadata.annotations',
      'metadata.annotations["example.com/a"]',
      'subsets',
      'subsets[*]',
      'subsets[*].addresses',
      'subsets[*].addresses[*]',
      'subsets[*].addresses[*].ip',
    ]);
  });
});

describe('a run', () => {
  let session: PlaygroundSession;
  beforeAll(async () => {
    session = await PlaygroundSession.open(CONFIG);
  });
  afterAll(() => session[Symbol.asyncDispose]());
  const run = async (body: JsonObject): Promise<JsonObject> => (await session.run(body)) as JsonObject; // its documented shape

  test.each(PAGE_EXAMPLES.map((example) => [example.title, example] as const))(
    'example: %s',
    async (_, { title: _title, ...example }) => {
      const { problems, notes, traces } = await run(example);
      expect({ problems, notes }).toEqual({ problems: [], notes: [] });
      expect(JSON.stringify(traces)).not.toContain('"error"');
      expect(JSON.stringify(traces)).not.toContain('"nearest"');
    },
  );

  test('an error is shown in its editor, and nothing is run', async () => {
    const result = await run({
      patches: '- path: a\n  expression: value +\n',
      virtual: 'kind: [',
      host: '- 1\n',
    });
    expect(result['problems']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ editor: 'patches', line: 2, severity: 'error' }),
        expect.objectContaining({ editor: 'virtual', line: 1 }),
        expect.objectContaining({ editor: 'host' }),
      ]),
    );
    expect(result['result']).toBeUndefined();
  });

  test('the page starts with the patches of the configuration', () => {
    const patches = [{ path: 'metadata.labels.a', expression: 'value' }];
    const endpoints = { ...CONFIG.sync.endpoints, patches };
    const own = { ...CONFIG, sync: { ...CONFIG.sync, endpoints } };
    expect(startState(own)).toMatchObject({
      isDemo: false,
      name: 'my-vcluster',
      examples: expect.arrayContaining([expect.objectContaining({ title: 'Your configuration' })]) as unknown,
    });
  });
});
