/** Access to the page, and the files that it is served. */

import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { patchPathsOf } from '../../src/showcase/playground-session.ts';
import { denialOf, findPageModules, startPageServer } from '../../src/showcase/page-server.ts';

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
