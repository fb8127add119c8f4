/** What the page shows first: each example runs without a problem, after the patches of the configuration. */

import { afterAll, describe, expect, test } from 'vitest';
import { pageExamples, startState } from '../../src/showcase/playground.ts';
import { PlaygroundSession } from '../../src/showcase/playground-session.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { validConfig } from '../cli/config/setup.ts';

const CONFIG = validConfig('endpointSyncer: {name: my-vcluster, host: {namespace: team-a}}');

interface RunResult extends JsonObject {
  original: string;
  result: string;
  plainResult: string;
}

describe('the page', () => {
  const session = new PlaygroundSession(() => CONFIG);
  afterAll(() => session[Symbol.asyncDispose]());
  const run = async (body: JsonObject): Promise<RunResult> => (await session.run(body)) as RunResult; // its documented shape

  test.each(pageExamples().examples.map((example) => [example.title, example] as const))(
    'example: %s',
    async (_, { title: _title, ...example }) => {
      const { problems, notes, traces } = await run(example);
      expect({ problems, notes }).toEqual({ problems: [], notes: [] });
      expect(JSON.stringify(traces)).not.toContain('"error"');
      expect(JSON.stringify(traces)).not.toContain('"nearest"');
    },
  );

  test('the page starts with the patches of all kinds of the configuration', async () => {
    const patches = [{ path: 'endpoints[*].hostname', expression: '"x"' }];
    const own = { ...CONFIG, sync: { ...CONFIG.sync, endpointSlices: { enabled: true, patches } } };
    const { examples } = startState(own) as { examples: { patches: string; virtual: string }[] }; // its documented shape
    const { patches: text = '', virtual = '' } = examples[0] ?? {};
    const result = await run({ patches: text, virtual });
    expect(result.plainResult).toContain('hostname: x');
    expect(virtual).not.toContain('kind: Endpoints\n');
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
