/** Responses in the form that the client requested. */

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { jsonResponse, negotiate } from '../../../src/apiserver/request/api-response.ts';
import { YAML_BLOCK_CHARACTERS_MAX } from '../../../src/apiserver/limits.ts';
import { longestTurnMs } from './longest-turn.ts';

const YAML = negotiate('application/yaml');

describe('a response in YAML', () => {
  test('is in block style', () => {
    const { headers, body } = jsonResponse(200, { kind: 'List', items: [{ a: 'yes' }] }, YAML);
    expect([headers['content-type'], body]).toEqual([
      'application/yaml',
      'items:\n  - a: "yes"\nkind: List\n',
    ]);
  });

  test('that is long is in flow style, which is fast to print', async () => {
    const items = Array.from({ length: 100_000 }, (_, index) => ({ name: `item-${index}`, value: '' }));
    const text = JSON.stringify({ items });
    expect(text.length).toBeGreaterThan(YAML_BLOCK_CHARACTERS_MAX);
    let body = '';
    const turnMs = await longestTurnMs(async () => ({ body } = jsonResponse(200, text, YAML)));
    expect(parse(body.slice(0, body.indexOf('}') + 1) + ']}')).toEqual({ items: [items[0]] });
    expect(body).toBe(text);
    // Block style takes a second.
    expect(turnMs).toBeLessThan(100);
  });
});
